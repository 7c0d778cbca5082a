import { ServiceError } from '@remora/base';

/** Callbacks by signal: each signal has one listener, as Node warns of a leak at more than ten. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Runs `fn` when the signal aborts. Returns a function that removes it. A signal that has aborted already calls
 * nothing.
 */
export function onAbort(signal: AbortSignal, fn: () => void): () => void {
  requireSignal(signal);
  let callbacks = waiting.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    waiting.set(signal, callbacks);
  }
  if (callbacks.size === 0) signal.addEventListener('abort', abortAll);
  callbacks.add(fn);
  const mine = callbacks;
  return () => {
    if (mine.delete(fn) && mine.size === 0) signal.removeEventListener('abort', abortAll);
  };
}

/** @throws ServiceError INVALID_ARGUMENT for anything else, such as an AbortController. */
export function requireSignal(signal: AbortSignal): void {
  if (typeof signal?.addEventListener === 'function' && typeof signal.aborted === 'boolean') return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'signal: expected an AbortSignal, such as the `signal` of an AbortController',
  );
}

/**
 * A signal that is up to date whenever it is read: each read calls `look`, which may find out what a blocked thread has
 * missed, and abort the signal. Listeners are called as soon as the thread is free, or somebody reads the signal.
 */
export function lookingSignal(signal: AbortSignal, look: () => void): AbortSignal {
  return Object.defineProperties(signal, {
    aborted: {
      configurable: true,
      get(): boolean {
        look();
        return Reflect.get(AbortSignal.prototype, 'aborted', signal);
      },
    },
    throwIfAborted: {
      configurable: true,
      value(): void {
        look();
        AbortSignal.prototype.throwIfAborted.call(signal);
      },
    },
  });
}

function abortAll(this: AbortSignal): void {
  const callbacks = [...(waiting.get(this) ?? [])];
  waiting.delete(this);
  this.removeEventListener('abort', abortAll);
  for (const callback of callbacks) callback();
}

/**
 * Settles as `coming`, unless the signal aborts first: then it rejects with `reason()`, and a value that comes later
 * goes to `late`.
 */
export function unlessAborted<T>(
  coming: Promise<T>,
  signal: AbortSignal,
  { reason, late = () => {} }: { readonly reason: () => Error; readonly late?: (value: T) => void },
): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = signal.aborted;
    const forget = onAbort(signal, () => {
      over = true;
      reject(reason());
    });
    if (over) reject(reason());
    coming.then((value) => (over ? late(value) : resolve(value)), reject).finally(forget);
  });
}
