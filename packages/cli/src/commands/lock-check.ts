import { int } from '@remora/base';
import { Command } from 'commander';
import { exitCode } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import {
  addConnectionFlags,
  type ConnectionFlags,
  examples,
  flagReader,
  readLockName,
  withClient,
} from './connection.ts';

interface CheckFlags extends ConnectionFlags {
  readonly namespace: string;
}

export function lockCheckCommand(shell: Shell): Command {
  const command = new Command('check')
    .description(
      'Says whether a fencing version is still the current one: exit code 0, or 76 when it is not. A diagnosis: the holder ' +
        'may change before what is done next, so let what the lock protects refuse lower versions.',
    )
    .argument('<name>', '', readLockName)
    .argument('<version>', 'of a grant: REMORA_LOCK_VERSION', flagReader(int({ min: 0 })))
    .option('--namespace <name>', 'namespace of the lock', 'default')
    .addHelpText('after', examples('remora lock check orders/42 812', 'remora lock check orders/42 812 --json'));
  return addConnectionFlags(command, shell).action((name: string, version: number, flags: CheckFlags) =>
    withClient(flags, async (client) => {
      const current = await client.fence.check(name, version, { namespace: flags.namespace });
      if (flags.json) shell.out(JSON.stringify({ current }));
      else shell.out(current ? `${version} is current` : `${version} is not current`);
      if (!current) process.exitCode = exitCode('lockLost');
    }),
  );
}
