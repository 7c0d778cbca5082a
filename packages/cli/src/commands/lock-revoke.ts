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

/** `namespaced`: gives a command the flags that all commands about locks have. */
export function lockRevokeCommand(shell: Shell, namespaced: (command: Command, shell: Shell) => Command): Command {
  const limits = { max: 86_400_000 };
  const command = new Command('revoke')
    .description(
      'Asks all who hold a lock to let go of it, and waits. Nobody is forced: exit code 75 when the lock is still held ' +
        'when the time is over.',
    )
    .argument('<name>', '', readLockName)
    .addOption(durationOption('--wait', { desc: 'how long to wait', defaultMs: 30_000, limits }))
    .option('--reason <text>', 'told to the holder')
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
        throw new CommandError('lockBusy', `${printableText(name)} was not let go of within ${formatDurationMs(wait)}`);
      }
      if (!flags.json)
        shell.out(outcome === 'free' ? `nobody held ${printableText(name)}` : `${printableText(name)} was let go of`);
    }),
  );
}
