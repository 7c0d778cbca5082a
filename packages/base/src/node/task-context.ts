import { AsyncLocalStorage } from 'node:async_hooks';

let storage: AsyncLocalStorage<unknown> | undefined;

/** What the present task holds (see the client's `TaskContext`). Every promise pays for it from the first `run` on. */
export const taskContext = {
  holds: (): unknown => storage?.getStore(),
  run<Result>(holds: unknown, work: () => Result): Result {
    storage ??= new AsyncLocalStorage();
    return storage.run(holds, work);
  },
};
