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
    .summary('Checks if a fencing version is current.')
    .description(
      'Checks if a fencing version is current: exits with 0 if so, with 76 if not. For diagnosis only: the holder ' +
        'may change right after the check, so the protected resource itself must reject lower versions.',
    )
    .argument('<name>', 'name of the lock', readLockName)
    .argument('<version>', 'fencing version of a grant: REMORA_LOCK_VERSION', flagReader(int({ min: 0 })))
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
