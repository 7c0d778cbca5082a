/** Waits with a time limit. */
import type { Clock } from '@remora/base';
import { unlessAborted } from './abort.ts';

interface Limit<T> {
  readonly clock: Clock;
  /** Undefined: no limit. */
  readonly ms: number | undefined;
  /** The error to reject with when the time is over. */
  readonly reason: () => Error;
  /** Called with a value that comes after that. */
  readonly late?: ((value: T) => void) | undefined;
}

export function inTime<T>(coming: Promise<T>, { clock, ms, reason, late = () => {} }: Limit<T>): Promise<T> {
  if (ms === undefined) return coming;
  const over = new AbortController();
  const timer = clock.setTimer(ms, () => over.abort());
  return unlessAborted(coming, over.signal, { reason, late }).finally(() => timer.cancel());
}

/** Resolves when `coming` has settled, either way, or after `ms`. Does not cancel it. */
export async function settledWithin(coming: Promise<unknown>, clock: Clock, ms: number): Promise<void> {
  const settled = coming.then(
    () => {},
    () => {},
  );
  await inTime(settled, { clock, ms, reason: () => new Error('it takes longer') }).catch(() => {});
}
