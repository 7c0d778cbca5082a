import { durationMs } from '@remora/base';
import { Command } from 'commander';
import type { RemoraClient } from 'remora';
import { jsonLeader, leaderText } from '../format/leader-text.ts';
import { aborted, type Shell, stopSignal } from '../shell.ts';
import {
  addConnectionFlags,
  type ConnectionFlags,
  examples,
  flagReader,
  readLockName,
  withClient,
} from './connection.ts';
import { journalDir } from './lock-journal.ts';
import { type RunFlags, runUnderLock } from './lock-run.ts';
import { COMMAND_PROMISE } from './run-child.ts';

interface ElectionFlags extends ConnectionFlags {
  readonly namespace: string;
}

interface CampaignFlags
  extends Pick<RunFlags, 'wait' | 'ttl' | 'killAfter' | 'stopOnRevoke' | 'journal'>,
    ElectionFlags {
  readonly value?: string;
}

export function electionCommand(shell: Shell): Command {
  return new Command('election')
    .summary('Elects leaders, and shows the current leader.')
    .description(
      'Elects leaders, and shows the current leader. An election is a lock: "remora lock show" shows its candidates.',
    )
    .addHelpText(
      'after',
      examples('remora election run --value "$HOSTNAME" scheduler -- ./scheduler', 'remora election observe scheduler'),
    )
    .enablePositionalOptions()
    .addCommand(runCommand(shell))
    .addCommand(observeCommand(shell));
}

function namespaced(command: Command, shell: Shell): Command {
  return addConnectionFlags(command.option('--namespace <name>', 'namespace of the election', 'default'), shell);
}

function runCommand(shell: Shell): Command {
  const command = new Command('run')
    .summary('Runs a command while leading an election.')
    .description(
      'Joins an election as a candidate, and runs a command while leading. Exits with the code of the command; with 75 if ' +
        'not elected in time, 76 if the leadership was lost, and 126, 127, 128+n as "remora lock run" does. ' +
        `The environment variable REMORA_LOCK_VERSION holds the fencing version. ${COMMAND_PROMISE}`,
    )
    .argument('<name>', 'name of the election', readLockName)
    .argument('<command...>', 'the command and its arguments, after "--"')
    .option('--value <text>', 'value that the leader proclaims to observers')
    .option(
      '--wait <duration>',
      'give up if not elected after this time (default: wait forever)',
      flagReader(durationMs()),
    )
    .option(
      '--ttl <duration>',
      'how long the leadership lasts after this process dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--kill-after <duration>',
      'time from SIGTERM to SIGKILL after the leadership is lost (default: 1s)',
      flagReader(durationMs()),
    )
    .option('--stop-on-revoke', 'as in "remora lock run"')
    .option('--journal <directory>', 'as in "remora lock run"')
    .option('--no-journal', 'as in "remora lock run"')
    .addHelpText('after', examples('remora election run --value "$HOSTNAME" scheduler -- ./scheduler'));
  return namespaced(command, shell).action(
    async (name: string, argv: string[], { value, ...flags }: CampaignFlags): Promise<void> => {
      const journal = await journalDir(flags.journal, shell);
      const request = { name, argv, flags: { ...flags, ...(value === undefined ? {} : { data: value }) }, shell };
      const run = (client: RemoraClient) => runUnderLock(client, request);
      process.exitCode = await withClient(flags, run, journal === undefined ? {} : { journal });
    },
  );
}

function observeCommand(shell: Shell): Command {
  const command = new Command('observe')
    .description('Prints the current leader and its value, and every change, until Ctrl-C.')
    .argument('<name>', 'name of the election', readLockName)
    .addHelpText('after', examples('remora election observe scheduler', 'remora election observe scheduler --json'));
  return namespaced(command, shell).action((name: string, flags: ElectionFlags) =>
    withClient(flags, (client) => observe(client, { name, flags, shell })),
  );
}

async function observe(
  client: RemoraClient,
  { name, flags, shell }: { readonly name: string; readonly flags: ElectionFlags; readonly shell: Shell },
): Promise<void> {
  const { signal, dispose } = stopSignal();
  const leaders = client.election(name, { namespace: flags.namespace }).observe({ signal });
  const printing = (async () => {
    for await (const leader of leaders) {
      shell.out(flags.json ? JSON.stringify(jsonLeader(leader)) : leaderText(leader));
    }
  })();
  try {
    await Promise.race([printing, aborted(signal)]);
  } finally {
    dispose();
  }
}
