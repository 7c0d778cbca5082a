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

/** The shell keeps 8 bits of an exit code. */
const EXIT_CODE_MAX = 255;
const readVersion = flagReader(int({ min: 1 }));
const readPermits = flagReader(int({ min: 1, max: PERMITS_MAX }));

const EXAMPLES = `
Examples:
  Run a command while holding a lock; a second run waits for the first:
    $ remora lock run orders/42 -- ./ship-order 42

  Give up with exit code 75 if the lock is taken:
    $ remora lock run --wait 0 nightly -- ./backup

  Hold a lock shared with other readers; run at most four builds at a time:
    $ remora lock run --shared config -- ./reload
    $ remora lock run --permits 1 --capacity 4 builds -- make

  Show the holders and waiters of a lock; list locks:
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
  readonly upToVersion?: number;
}

export function lockCommand(shell: Shell): Command {
  return (
    new Command('lock')
      .description('Runs commands under locks, and shows, watches and revokes locks.')
      .addHelpText('after', EXAMPLES)
      // Arguments after the name of a lock belong to the command that runs under it.
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
    .summary('Runs a command while holding a lock.')
    .description(
      'Runs a command while holding a lock. Exits with the code of the command, or 128+n if signal n ended it; with 75 if the ' +
        'lock was not free in time, 76 if it was lost, even if that is discovered only at the release, 127 if the command does ' +
        'not exist, and 126 if it cannot be run. The command gets REMORA_LOCK_NAME and REMORA_LOCK_VERSION, the ' +
        'fencing version: pass it to the resource that the lock protects. Data that an earlier holder left is in ' +
        `REMORA_LOCK_PREVIOUS_DATA. ${COMMAND_PROMISE}`,
    )
    .argument('<name>', 'name of the lock', readLockName)
    .argument('<command...>', 'the command and its arguments, after "--"')
    .option(
      '--wait <duration>',
      'give up if the lock is not free after this time (default: wait forever)',
      flagReader(durationMs()),
    )
    .option(
      '--conflict-exit-code <number>',
      'exit code if the lock was not free in time (default: 75)',
      flagReader(int({ min: 0, max: EXIT_CODE_MAX })),
    )
    .option(
      '--ttl <duration>',
      'how long the lock stays held after this process dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--max-hold <duration>',
      'maximum hold time: after it, the lock counts as lost and the command is stopped',
      flagReader(durationMs({ min: 1 })),
    )
    .option(
      '--health-cmd <command>',
      'a shell command that runs periodically beside the command: after three failures in a row, the lock is released and the command is stopped',
    )
    .option(
      '--health-interval <duration>',
      'time between health checks (default: 5s)',
      flagReader(durationMs({ min: 1 })),
    )
    .option(
      '--health-failures <number>',
      'failures in a row that stop the command (default: 3)',
      flagReader(int({ min: 1 })),
    )
    .option(
      '--kill-after <duration>',
      'time from SIGTERM to SIGKILL after the lock is lost (default: 1s)',
      flagReader(durationMs()),
    )
    .option('--stop-on-revoke', 'send SIGTERM to the command when "lock revoke" requests the lock')
    .option('--data <text>', 'text that "lock show" displays with this holder')
    .option('--keep-data', 'leave the data with the lock after release; without --data, the data kept before')
    .option(
      '--lock-delay <duration>',
      'if this process dies holding the lock, nobody else gets it for this time (default: 0, at most 1m)',
      flagReader(durationMs({ max: LOCK_DELAY_MAX_MS })),
    )
    .option('--shared', 'share the lock with other --shared holders; without it, the holder is alone')
    .option('--permits <number>', 'acquire this many permits of a semaphore; requires --capacity', readPermits)
    .option(
      '--capacity <number>',
      'total permits of the semaphore, if it is unused and "lock capacity" did not set it',
      readPermits,
    )
    .option(
      '--journal <directory>',
      'where to record held locks, so that the next run releases the locks of a killed run ' +
        `(default: $XDG_STATE_HOME/remora/held, or ~/.local/state/remora/held)`,
    )
    .option('--no-journal', 'do not record held locks: the locks of a killed run stay held until their TTL ends')
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
    throw new CommandError(
      'usage',
      '--permits and --capacity must be given together: the permits to acquire, and the total',
    );
  }
  if (shared && permits !== undefined) {
    throw new CommandError('usage', '--shared applies to locks and --permits to semaphores; give only one of them');
  }
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists the locks that have holders or waiters, each with its first holder.')
    .option('--all', 'also free locks with kept data, a set capacity, or a recorded forced release')
    .option('--prefix <text>', 'only names that start with this text')
    .option('--limit <number>', 'maximum number of locks (default: 1000)', flagReader(int({ min: 1 })))
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
      if (more) shell.err(`there are more locks: raise --limit or narrow --prefix`);
    }),
  );
}

/** Many hidden free locks do not cause as many requests. */
const LIST_PAGE_MIN = 100;

async function listLocks(client: RemoraClient, flags: ListFlags) {
  const { namespace, prefix = '', limit = 1000, all = false } = flags;
  const locks: LockState[] = [];
  const pageSize = Math.min(Math.max(limit + 1, LIST_PAGE_MIN), 1000);
  // Reads one more than is shown, because only free locks may follow.
  for await (const lock of client.locks.list({ namespace, prefix, pageSize })) {
    if (!all && !isInUse(lock)) continue;
    if (locks.length === limit) return { locks, more: true };
    locks.push(lock);
  }
  return { locks, more: false };
}

function isInUse({ holderCount, waiterCount, passing }: LockState): boolean {
  return holderCount + waiterCount + passing > 0;
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description(
      'Shows the holders of a lock, how long each would keep it if its heartbeats stopped now, and the waiters.',
    )
    .argument('<name>', 'name of the lock', readLockName)
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
    .description('Takes a lock from all its holders, without asking them.')
    .argument('<name>', 'name of the lock', readLockName)
    .option('--force', 'required: from then on, only the fencing version protects against writes of the old holders')
    .option('--reason <text>', 'reason, recorded with the lock')
    .option('--by <text>', 'who took the lock, recorded with it (default: user and host)')
    .option('--up-to-version <version>', 'end only grants up to this version, which `lock show` shows', readVersion)
    .addHelpText('after', examples('remora lock release --force --reason "its host is gone" orders/42'));
  return namespaced(command, shell).action((name: string, flags: ReleaseFlags) => {
    if (!flags.force) {
      throw new CommandError('usage', 'only its holder releases a lock; add --force to take it from all holders');
    }
    return withClient(flags, async (client) => {
      const { namespace, reason = '', by = operatorName(), upToVersion } = flags;
      await client.locks.forceRelease(name, { namespace, reason, by: by.slice(0, 128), upToVersion });
      shell.out(flags.json ? JSON.stringify({ released: true }) : `released ${printableText(name)}`);
    });
  });
}

function capacityCommand(shell: Shell): Command {
  const command = new Command('capacity')
    .description('Sets the capacity of a semaphore for all clients. Current holders keep their permits.')
    .argument('<name>', 'name of the lock', readLockName)
    .argument(
      '<permits>',
      'number of permits; 0 removes the setting, and the next acquirer sets the capacity',
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
          ? `removed the capacity of ${printableText(name)}`
          : `${printableText(name)} has ${counted(permits, 'permit')}`,
      );
    }),
  );
}

function forgetCommand(shell: Shell): Command {
  const command = new Command('forget')
    .summary('Deletes the data and records kept with a lock.')
    .description(
      'Deletes the data that earlier holders left with a lock (lock run --keep-data) and its recorded forced release. The ' +
        'current holders keep the lock.',
    )
    .argument('<name>', 'name of the lock', readLockName)
    .addHelpText('after', examples('remora lock forget orders/42'));
  return namespaced(command, shell).action((name: string, flags: NamespaceFlags) =>
    withClient(flags, async (client) => {
      const forgotten = await client.locks.forget(name, { namespace: flags.namespace });
      if (flags.json) return shell.out(JSON.stringify({ forgotten }));
      shell.out(
        forgotten
          ? `deleted what was kept with ${printableText(name)}`
          : `nothing was kept with ${printableText(name)}`,
      );
    }),
  );
}
