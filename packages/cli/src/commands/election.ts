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
    .description('Elects leaders, and shows who leads. An election is a lock: "remora lock show" shows its candidates.')
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
    .description(
      "Stands as a candidate, and runs a command while leading. Its exit code is the command's; 75 when it was not " +
        'elected in time, 76 when the leadership was lost, 126, 127 and 128+n as of "remora lock run". ' +
        `The command sees REMORA_LOCK_VERSION, the fencing version. ${COMMAND_PROMISE}`,
    )
    .argument('<name>', '', readLockName)
    .argument('<command...>', 'after "--", so that its flags are its own')
    .option('--value <text>', 'what is proclaimed to those who observe')
    .option('--wait <duration>', 'how long to stand; as long as it takes unless given', flagReader(durationMs()))
    .option(
      '--ttl <duration>',
      'how long the leadership outlives this process when it dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--kill-after <duration>',
      'from SIGTERM to SIGKILL when the leadership is lost (default: 1s)',
      flagReader(durationMs()),
    )
    .option('--stop-on-revoke', 'as of "remora lock run"')
    .option('--journal <directory>', 'as of "remora lock run"')
    .option('--no-journal', 'as of "remora lock run"')
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
    .description('Prints who leads and what it proclaims, now and whenever that changes, until Ctrl-C.')
    .argument('<name>', '', readLockName)
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
