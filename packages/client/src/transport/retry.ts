import { ServiceError } from '@remora/base';
import { type Duration, durationMs } from '../options/duration.ts';
import { COUNT_MAX, count, duration } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';

/** How requests that a gateway or a range did not answer are repeated, within their own time-out. */
export interface RetryOptions {
  /** The pause before the first repetition, once every gateway was tried; it doubles from one to the next. Default 20 ms. */
  readonly initial?: Duration | undefined;
  /** The longest pause. Default 1 s. */
  readonly max?: Duration | undefined;
  /**
   * How often a request is sent at most; without it, as often as its time-out allows. Who waits for a lock goes on asking
   * all the same, and what gives a lock back in the background is sent until it is answered.
   */
  readonly attempts?: number | undefined;
}

export const RETRY_OPTIONS = optionSet<RetryOptions>('retry', {
  ...{ initial: duration, max: duration, attempts: count(1, COUNT_MAX) },
});

export interface RetryPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly attemptsMax: number;
}

const INITIAL_MS = 20;
const MAX_MS = 1_000;
/** So that no number of failures makes it more than a number can say. */
const DOUBLINGS_MAX = 40;

/** @throws ServiceError INVALID_ARGUMENT when the options contradict. */
export function retryPolicy(options: RetryOptions = {}): RetryPolicy {
  checkOptions(RETRY_OPTIONS, options);
  const { initial = INITIAL_MS, max, attempts = Number.MAX_SAFE_INTEGER } = options;
  const initialMs = durationMs(initial, 'retry.initial');
  const maxMs = durationMs(max ?? Math.max(MAX_MS, initialMs), 'retry.max');
  if (initialMs < 1 || maxMs < initialMs) {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `retry: expected initial from 1 ms to max, got ${initialMs} ms, with a max of ${maxMs} ms`,
    );
  }
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new ServiceError('INVALID_ARGUMENT', `retry.attempts: expected a whole number above 0, got ${attempts}`);
  }
  return { initialMs, maxMs, attemptsMax: attempts };
}

/** The longest that the pause after so many failures may be; the pause itself is a random part of it, so that clients part. */
export function pauseCeilingMs({ initialMs, maxMs }: RetryPolicy, failures: number): number {
  return Math.min(maxMs, initialMs * 2 ** Math.min(failures, DOUBLINGS_MAX));
}
