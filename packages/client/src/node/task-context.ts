import { AsyncLocalStorage } from 'node:async_hooks';
import type { TaskContext } from '../ports.ts';

let storage: AsyncLocalStorage<unknown> | undefined;

/** One for all clients of the process. Every promise pays for it from the first `run` on. */
export const taskContext: TaskContext = {
  holds: () => storage?.getStore(),
  run(holds, work) {
    storage ??= new AsyncLocalStorage();
    return storage.run(holds, work);
  },
};
