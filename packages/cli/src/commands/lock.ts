import { durationMs, int } from '@remora/base';
import { LOCK_DELAY_MAX_MS, PERMITS_MAX } from '@remora/lock';
import { Command } from 'commander';
import type { LockState, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import { printable, printableText } from '../format/bytes-text.ts';
import { heldText, holderCells, jsonLock, lockText } from '../format/lock-text.ts';
import { counted } from '../format/sizes.ts';
import { table } from '../format/table.ts';
import type { Shell } from '../shell.ts';
import {
  addConnectionFlags,
  type ConnectionFlags,
  examples,
  flagReader,
  readLockName,
  withClient,
} from './connection.ts';
import { lockCheckCommand } from './lock-check.ts';
import { journalDir } from './lock-journal.ts';
import { lockRevokeCommand } from './lock-revoke.ts';
import { type RunFlags, runUnderLock } from './lock-run.ts';
import { lockWatchCommand } from './lock-watch.ts';
import { operatorName } from './operator-name.ts';
import { COMMAND_PROMISE } from './run-child.ts';

const readPermits = flagReader(int({ min: 1, max: PERMITS_MAX }));

const EXAMPLES = `
Examples:
  Run a command while holding a lock; a second one waits for the first:
    $ remora lock run orders/42 -- ./ship-order 42

  Give up when it is taken, with exit code 75:
    $ remora lock run --wait 0 nightly -- ./backup

  Read while others read, and nobody writes; at most four builds at a time:
    $ remora lock run --shared config -- ./reload
    $ remora lock run --permits 1 --capacity 4 builds -- make

  See who holds it and who waits:
    $ remora lock show orders/42
    $ remora lock ls --prefix orders/`;

interface NamespaceFlags extends ConnectionFlags {
  readonly namespace: string;
}

interface ListFlags extends NamespaceFlags {
  readonly all?: true;
  readonly prefix?: string;
  readonly limit?: number;
}

interface ReleaseFlags extends NamespaceFlags {
  readonly force?: true;
  readonly reason?: string;
  readonly by?: string;
}

export function lockCommand(shell: Shell): Command {
  return (
    new Command('lock')
      .description('Holds locks, and shows who does.')
      .addHelpText('after', EXAMPLES)
      // What follows the name of a lock belongs to the command that runs under it.
      .enablePositionalOptions()
      .addCommand(runCommand(shell))
      .addCommand(listCommand(shell))
      .addCommand(showCommand(shell))
      .addCommand(lockWatchCommand(shell, { namespaced, jsonLock }))
      .addCommand(lockCheckCommand(shell))
      .addCommand(lockRevokeCommand(shell, namespaced))
      .addCommand(releaseCommand(shell))
      .addCommand(capacityCommand(shell))
      .addCommand(forgetCommand(shell))
  );
}

function namespaced(command: Command, shell: Shell): Command {
  return addConnectionFlags(command.option('--namespace <name>', 'namespace of the lock', 'default'), shell);
}

function runCommand(shell: Shell): Command {
  const command = new Command('run')
    .description(
      "Runs a command while holding a lock. Its exit code is the command's, 128+n when signal n ended it; 75 when the lock " +
        'was not free in time, 76 when it was lost, also when that is found out only at its release; 127 when there is no ' +
        'such command, and 126 when it cannot be run. The command sees REMORA_LOCK_NAME and REMORA_LOCK_VERSION, the ' +
        'fencing version: pass it to whatever the lock protects. What an earlier holder left with the lock is in ' +
        `REMORA_LOCK_PREVIOUS_DATA. ${COMMAND_PROMISE}`,
    )
    .argument('<name>', '', readLockName)
    .argument('<command...>', 'after "--", so that its flags are its own')
    .option(
      '--wait <duration>',
      'how long to queue, which is told on stderr; as long as it takes unless given',
      flagReader(durationMs()),
    )
    .option(
      '--ttl <duration>',
      'how long the lock outlives this process when it dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--max-hold <duration>',
      'how long the lock is held at most: then it counts as lost, and the command is stopped',
      flagReader(durationMs({ min: 1 })),
    )
    .option(
      '--health-cmd <command>',
      'a shell command that is run now and then beside the command: when it has failed three times one after the other, the lock is released at once, and the command is stopped',
    )
    .option('--health-interval <duration>', 'how often it is run (default: 5s)', flagReader(durationMs({ min: 1 })))
    .option('--health-failures <number>', 'how often it has to fail (default: 3)', flagReader(int({ min: 1 })))
    .option(
      '--kill-after <duration>',
      'from SIGTERM to SIGKILL when the lock is lost (default: 1s)',
      flagReader(durationMs()),
    )
    .option(
      '--stop-on-revoke',
      'when somebody asks for the lock ("lock revoke"), the command is told to end, by SIGTERM',
    )
    .option('--data <text>', 'shown with the lock to whoever looks at it')
    .option('--keep-data', 'the data stay with the lock afterwards; without --data, those that were kept before')
    .option(
      '--lock-delay <duration>',
      'nobody else has it for so long when this process dies without releasing it (at most 1m; default: 0)',
      flagReader(durationMs({ max: LOCK_DELAY_MAX_MS })),
    )
    .option('--shared', 'together with others who ask for it shared; who does not, has it alone')
    .option('--permits <number>', 'so many permits of a semaphore; needs --capacity', readPermits)
    .option(
      '--capacity <number>',
      'how many permits there are, if nobody uses the semaphore and "lock capacity" has not said',
      readPermits,
    )
    .option(
      '--journal <directory>',
      'where held locks are named, so that the next run gives back what one left that was killed ' +
        `(default: $XDG_STATE_HOME/remora/held, or ~/.local/state/remora/held)`,
    )
    .option('--no-journal', 'names them nowhere: what a killed run leaves is freed by its TTL')
    .addHelpText(
      'after',
      examples(
        'remora lock run orders/42 -- ./ship-order 42',
        'remora lock run --wait 0 nightly -- ./backup',
        'remora lock run --shared config -- ./reload',
        'remora lock run --permits 1 --capacity 4 builds -- make',
        "remora lock run --health-cmd 'curl -fs localhost:8080/health' leader -- ./serve",
        'remora lock run --wait 30s --data "$HOSTNAME" deploy -- sh -c \'./deploy --fence $REMORA_LOCK_VERSION\'',
      ),
    );
  return namespaced(command, shell).action(async (name: string, argv: string[], flags: RunFlags) => {
    checkKind(flags);
    const journal = await journalDir(flags.journal, shell);
    const run = (client: RemoraClient) => runUnderLock(client, { name, argv, flags, shell });
    process.exitCode = await withClient(flags, run, journal === undefined ? {} : { journal });
  });
}

function checkKind({ shared, permits, capacity }: RunFlags): void {
  if ((permits === undefined) !== (capacity === undefined)) {
    throw new CommandError('usage', '--permits and --capacity go together: so many permits, of how many');
  }
  if (shared && permits !== undefined) {
    throw new CommandError('usage', '--shared is for locks, and --permits for semaphores');
  }
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists the locks that are held or waited for, with the first of their holders.')
    .option(
      '--all',
      'also free ones with which something was left: data, a set capacity, or on record who took them by force',
    )
    .option('--prefix <text>', 'only names that begin with it')
    .option('--limit <number>', 'at most so many (default: 1000)', flagReader(int({ min: 1 })))
    .addHelpText('after', examples('remora lock ls', 'remora lock ls --all', 'remora lock ls --prefix orders/ --json'));
  return namespaced(command, shell).action((flags: ListFlags) =>
    withClient(flags, async (client) => {
      const { locks, more } = await listLocks(client, flags);
      if (flags.json) return shell.out(JSON.stringify({ locks: locks.map(jsonLock), more }));
      const rows = locks.map((state) => [
        printable(state.lock.name),
        state.kind,
        heldText(state),
        ...holderCells(state.holders[0]),
        state.waiterCount,
      ]);
      shell.out(table(['NAME', 'KIND', 'HELD', 'VERSION', 'SINCE', 'SESSION', 'DATA', 'WAITING'], rows));
      if (more) shell.err(`there are more; see --limit and --prefix`);
    }),
  );
}

/** Many free locks that are not shown do not make as many questions. */
const LIST_PAGE_MIN = 100;

async function listLocks(client: RemoraClient, flags: ListFlags) {
  const { namespace, prefix = '', limit = 1000, all = false } = flags;
  const locks: LockState[] = [];
  let after: Uint8Array | undefined;
  // One further than is shown, as there may be free ones only behind those.
  for (let more = true; more && locks.length <= limit; ) {
    const page = await client.locks.list({
      namespace,
      prefix,
      limit: Math.min(Math.max(limit + 1 - locks.length, LIST_PAGE_MIN), 1000),
      ...(after === undefined ? {} : { after }),
    });
    locks.push(...(all ? page.locks : page.locks.filter(isInUse)));
    after = page.locks.at(-1)?.lock.name;
    more = page.more && after !== undefined;
  }
  return { locks: locks.slice(0, limit), more: locks.length > limit };
}

function isInUse({ holderCount, waiterCount, passing }: LockState): boolean {
  return holderCount + waiterCount + passing > 0;
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description(
      'Shows who holds a lock, how long each would keep it if no more were heard of it, and who waits for it.',
    )
    .argument('<name>', '', readLockName)
    .addHelpText('after', examples('remora lock show orders/42', 'remora lock show orders/42 --json'));
  return namespaced(command, shell).action((name: string, flags: NamespaceFlags) =>
    withClient(flags, async (client) => {
      const state = await client.locks.details(name, { namespace: flags.namespace });
      if (flags.json) return shell.out(JSON.stringify(state === undefined ? null : jsonLock(state)));
      shell.out(state === undefined ? `${printableText(name)} is free` : lockText(state));
    }),
  );
}

function releaseCommand(shell: Shell): Command {
  const command = new Command('release')
    .description('Takes a lock from all who hold it, who are not asked.')
    .argument('<name>', '', readLockName)
    .option('--force', 'yes, really: only the fencing version still protects against what the holder does next')
    .option('--reason <text>', 'why; stays on record with the lock, with who did it')
    .option('--by <text>', 'who does it (default: user and host)')
    .addHelpText('after', examples('remora lock release --force --reason "its host is gone" orders/42'));
  return namespaced(command, shell).action((name: string, flags: ReleaseFlags) => {
    if (!flags.force) {
      throw new CommandError('usage', 'a lock is released by its holder; to take it away, add --force');
    }
    return withClient(flags, async (client) => {
      const { namespace, reason = '', by = operatorName() } = flags;
      await client.locks.forceRelease(name, { namespace, reason, by: by.slice(0, 128) });
      shell.out(flags.json ? JSON.stringify({ released: true }) : `released ${printableText(name)}`);
    });
  });
}

function capacityCommand(shell: Shell): Command {
  const command = new Command('capacity')
    .description('Sets how many permits a semaphore has, for all clients. Nobody loses permits that it holds.')
    .argument('<name>', '', readLockName)
    .argument(
      '<permits>',
      '0 forgets what was set: who acquires next says how many',
      flagReader(int({ min: 0, max: PERMITS_MAX })),
    )
    .addHelpText('after', examples('remora lock capacity builds 8', 'remora lock capacity builds 0'));
  return namespaced(command, shell).action((name: string, permits: number, flags: NamespaceFlags) =>
    withClient(flags, async (client) => {
      const semaphore = client.semaphore(name, { namespace: flags.namespace, permits: Math.max(1, permits) });
      await (permits === 0 ? semaphore.resetPermits() : semaphore.setPermits(permits));
      if (flags.json) return shell.out(JSON.stringify({ capacity: permits }));
      shell.out(
        permits === 0
          ? `forgot the capacity of ${printableText(name)}`
          : `${printableText(name)} has ${counted(permits, 'permit')}`,
      );
    }),
  );
}

function forgetCommand(shell: Shell): Command {
  const command = new Command('forget')
    .description(
      'Forgets what earlier holders left with a lock (lock run --keep-data), and who took it by force. Who holds it ' +
        'keeps holding it.',
    )
    .argument('<name>', '', readLockName)
    .addHelpText('after', examples('remora lock forget orders/42'));
  return namespaced(command, shell).action((name: string, flags: NamespaceFlags) =>
    withClient(flags, async (client) => {
      const forgotten = await client.locks.forget(name, { namespace: flags.namespace });
      if (flags.json) return shell.out(JSON.stringify({ forgotten }));
      shell.out(
        forgotten ? `forgot what was left with ${printableText(name)}` : `nothing was left with ${printableText(name)}`,
      );
    }),
  );
}
