import { Command } from 'commander';
import type { LockState, LocksWatchEvent, RemoraClient } from 'remora';
import { jsonLockEvent, lockEventText } from '../format/lock-event-text.ts';
import { aborted, type Shell, stopSignal } from '../shell.ts';
import { type ConnectionFlags, examples, readLockName, withClient } from './connection.ts';

interface WatchFlags extends ConnectionFlags {
  readonly namespace: string;
  readonly prefix?: true;
}

interface WatchParts {
  /** Adds the flags that all commands about locks have. */
  readonly namespaced: (command: Command, shell: Shell) => Command;
  readonly jsonLock: (state: LockState) => unknown;
}

export function lockWatchCommand(shell: Shell, { namespaced, jsonLock }: WatchParts): Command {
  const command = new Command('watch')
    .description('Prints the state of a lock and every change to it, until Ctrl-C.')
    .argument('<name>')
    .option('--prefix', 'all locks whose names start with <name>; free locks are not printed')
    .addHelpText('after', examples('remora lock watch orders/42', 'remora lock watch --prefix orders/ --json'));
  return namespaced(command, shell).action((name: string, flags: WatchFlags) => {
    if (!flags.prefix) readLockName(name);
    return withClient(flags, (client) =>
      watch(client, name, flags, (event) => print(event, { flags, shell, jsonLock })),
    );
  });
}

async function watch(
  client: RemoraClient,
  name: string,
  { namespace, prefix }: WatchFlags,
  onEvent: (event: LocksWatchEvent) => void,
): Promise<void> {
  const { signal, dispose } = stopSignal();
  const events = prefix
    ? client.locks.events({ namespace, prefix: name, signal })
    : client.lock(name, { namespace }).events({ signal });
  const printing = (async () => {
    for await (const event of events) onEvent(event);
  })();
  try {
    await Promise.race([printing, aborted(signal)]);
  } finally {
    dispose();
  }
}

function print(
  event: LocksWatchEvent,
  { flags, shell, jsonLock }: Pick<WatchParts, 'jsonLock'> & { readonly flags: WatchFlags; readonly shell: Shell },
): void {
  const text = flags.json ? JSON.stringify(jsonLockEvent(event, jsonLock)) : lockEventText(event);
  if (text !== undefined) shell.out(text);
}
