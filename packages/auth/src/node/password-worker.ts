/**
 * The thread of `passwordThread`: it derives one key after the other, in place. It takes less of the processor than the
 * other threads when they all want it, so a flood of log-ins does not slow down those who are logged in.
 */
import { randomBytes } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { hashPassword, isPassword, SALT_BYTES } from '../credentials/password-hash.ts';
import type { PasswordTask } from '../credentials/password-hasher.ts';

yieldToOtherThreads();

parentPort?.on('message', (task: PasswordTask) => {
  const isNew = task.type === 'hash';
  parentPort?.postMessage(
    isNew ? hashPassword(task.password, randomBytes(SALT_BYTES)) : isPassword(task.password, task.hash),
  );
});

/** Linux has priorities by thread, and names the calling thread. Elsewhere it competes as before. */
function yieldToOtherThreads(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A priority is no promise.
  }
}
