/** What a caller waits for no longer than it said. */
import type { Clock } from '@remora/base';
import { unlessAborted } from './abort.ts';

interface Limit<T> {
  readonly clock: Clock;
  /** Undefined: however long it takes. */
  readonly ms: number | undefined;
  /** With what to reject when the time is over. */
  readonly reason: () => Error;
  /** Is given what comes after that. */
  readonly late?: ((value: T) => void) | undefined;
}

export function inTime<T>(coming: Promise<T>, { clock, ms, reason, late = () => {} }: Limit<T>): Promise<T> {
  if (ms === undefined) return coming;
  const over = new AbortController();
  const timer = clock.setTimer(ms, () => over.abort());
  return unlessAborted(coming, over.signal, { reason, late }).finally(() => timer.cancel());
}

/** Resolves when it has settled, however that was, or after so many ms. It goes on all the same. */
export async function settledWithin(coming: Promise<unknown>, clock: Clock, ms: number): Promise<void> {
  const settled = coming.then(
    () => {},
    () => {},
  );
  await inTime(settled, { clock, ms, reason: () => new Error('it takes longer') }).catch(() => {});
}
