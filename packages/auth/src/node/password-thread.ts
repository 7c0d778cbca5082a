import { Worker } from 'node:worker_threads';
import type { PasswordThread } from '../credentials/password-hasher.ts';

/** Beside this file when it is compiled. */
const WORKER = './password-worker.js';

/** A worker, which does not keep the process alive. */
export function passwordThread(): PasswordThread {
  const worker = new Worker(new URL(WORKER, import.meta.url), { execArgv: [] });
  worker.unref();
  return {
    start(answered, failed) {
      worker.on('message', answered);
      worker.on('error', failed);
    },
    post: (task) => worker.postMessage(task),
    stop: () => void worker.terminate(),
  };
}
