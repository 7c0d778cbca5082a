/** The thread of `passwordThread`: it derives one key after the other, in place. */
import { randomBytes } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { hashPassword, isPassword, SALT_BYTES } from '../credentials/password-hash.ts';
import type { PasswordTask } from '../credentials/password-hasher.ts';

parentPort?.on('message', (task: PasswordTask) => {
  const isNew = task.type === 'hash';
  parentPort?.postMessage(
    isNew ? hashPassword(task.password, randomBytes(SALT_BYTES)) : isPassword(task.password, task.hash),
  );
});
