/** Work that waits for its turn, and the promise that settles when it ends. */
export interface Task {
  readonly run: () => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly promise: Promise<void>;
}

export function newTask(run: () => Promise<void>): Task {
  const { promise, resolve, reject } = withResolvers();
  return { run, promise, resolve, reject };
}

function withResolvers(): Pick<Task, 'promise' | 'resolve' | 'reject'> {
  let resolve: () => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
