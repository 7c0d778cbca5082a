import { ServiceError } from '@remora/base';
import { type Duration, durationMs } from '../options/duration.ts';
import { COUNT_MAX, count, duration } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';

/** How requests that no gateway or range answered are retried, within their own time-out. */
export interface RetryOptions {
  /**
   * The first pause, after every gateway was tried once. It doubles with every further failure. At least 1 ms. Default
   * 20 ms.
   */
  readonly initial?: Duration | undefined;
  /** The longest pause. Default 1 s, or `initial` if that is longer. */
  readonly max?: Duration | undefined;
  /**
   * How often a request is sent at most. Default: as often as its time-out allows. It does not limit a waiter for a
   * lock, nor the releases that are retried in the background.
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
/** Keeps the exponent finite for any number of failures. */
const DOUBLINGS_MAX = 40;

/** @throws ServiceError INVALID_ARGUMENT for invalid options, or options that contradict one another. */
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

/**
 * The upper bound of the pause after that many failures. The pause itself is a random part of it, so that clients
 * spread.
 */
export function pauseCeilingMs({ initialMs, maxMs }: RetryPolicy, failures: number): number {
  return Math.min(maxMs, initialMs * 2 ** Math.min(failures, DOUBLINGS_MAX));
}
