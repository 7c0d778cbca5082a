// Processes of an example. They end with it, however it ends.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL'); // Also ends a frozen process.
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

export function startChild(program: URL, args: readonly string[] = []): ChildProcess {
  const child = fork(program, args);
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** The next message of a child. @throws Error if the child ends instead. */
export async function messageOf<Message>(child: ChildProcess): Promise<Message> {
  const [message] = await Promise.race([once(child, 'message'), failure(child)]);
  return message as Message;
}

/** Rejects when the child ends. */
export async function failure(child: ChildProcess): Promise<never> {
  const [code, signal] = await once(child, 'exit');
  throw new Error(
    `a process of the example has ended: ${child.spawnargs.join(' ')} (${signal ?? `exit code ${code}`})`,
  );
}
