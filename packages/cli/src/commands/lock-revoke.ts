import { formatDurationMs } from '@remora/base';
import { Command } from 'commander';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import { type ConnectionFlags, durationOption, examples, readLockName, withClient } from './connection.ts';

interface RevokeFlags extends ConnectionFlags {
  readonly namespace: string;
  readonly wait: number;
  readonly reason?: string;
}

/** `namespaced` adds the flags that all commands about locks have. */
export function lockRevokeCommand(shell: Shell, namespaced: (command: Command, shell: Shell) => Command): Command {
  const limits = { max: 86_400_000 };
  const command = new Command('revoke')
    .summary('Asks all holders to release a lock.')
    .description(
      'Asks all holders to release a lock, and waits until they have. Nobody is forced: exits with 75 if the lock is still ' +
        'held after --wait.',
    )
    .argument('<name>', 'name of the lock', readLockName)
    .addOption(durationOption('--wait', { desc: 'how long to wait for the release', defaultMs: 30_000, limits }))
    .option('--reason <text>', 'reason, sent to the holders')
    .addHelpText('after', examples('remora lock revoke --wait 10s --reason "host goes down" orders/42'));
  return namespaced(command, shell).action((name: string, flags: RevokeFlags) =>
    withClient(flags, async (client) => {
      const { namespace, wait, reason } = flags;
      const by = shell.env.USER ?? '';
      const outcome = await client.locks.revoke(name, {
        namespace,
        wait,
        by,
        ...(reason === undefined ? {} : { reason }),
      });
      if (flags.json) shell.out(JSON.stringify({ outcome }));
      if (outcome === 'declined') {
        throw new CommandError('lockBusy', `${printableText(name)} was not released within ${formatDurationMs(wait)}`);
      }
      if (!flags.json)
        shell.out(outcome === 'free' ? `nobody held ${printableText(name)}` : `${printableText(name)} was released`);
    }),
  );
}
