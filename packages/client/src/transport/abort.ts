import { ServiceError } from '@remora/base';

/** Whoever waits for a signal, by signal: one listener each, as Node warns of a leak when there are more than ten. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Runs `fn` when the signal aborts; returns a function that forgets it. A signal that has aborted calls nobody. */
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

/** @throws ServiceError INVALID_ARGUMENT for anything else, such as the controller in place of its signal. */
export function requireSignal(signal: AbortSignal): void {
  if (typeof signal?.addEventListener === 'function' && typeof signal.aborted === 'boolean') return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'signal: expected an AbortSignal, such as the `signal` of an AbortController',
  );
}

/**
 * A signal that tells the truth whenever it is looked at, also by who has kept it: `look` finds out what a busy thread has not
 * been told, and aborts it if need be. What listens to it hears of that as soon as the thread is free, or somebody looks.
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

/** What comes, unless the signal aborts before: rejects with `reason()` then, and what comes all the same goes to `late`. */
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
