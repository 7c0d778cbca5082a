import { parseDurationMs, ServiceError } from '@remora/base';
import { shown } from './options.ts';

type Part = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/**
 * A number of milliseconds, or text as on the command line: numbers with units, such as `'250ms'`, `'5s'`, `'1m30s'`,
 * `'1h'` and `'2d'`, or `'0'`. The type takes up to three numbers.
 */
export type Duration = number | '0' | Part | `${Part}${Part}` | `${Part}${Part}${Part}`;

/** The longest duration that a number of ms expresses exactly: some 285,000 years. */
const DURATION_MS_MAX = Number.MAX_SAFE_INTEGER;

/** @throws ServiceError INVALID_ARGUMENT for anything but a duration from 0 to `DURATION_MS_MAX`. */
export function durationMs(duration: Duration, what: string): number {
  const ms = msOf(duration);
  if (ms >= 0 && ms <= DURATION_MS_MAX) return ms;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: expected a duration, such as 250 (milliseconds), '250ms', '5s' or '1m30s', got ${shown(duration)}`,
  );
}

/** A shorter session would end before its first heartbeat arrives: the caller most likely meant seconds. */
const TTL_MS_MIN = 100;

/** @throws ServiceError INVALID_ARGUMENT for anything but a duration of at least 100 ms. */
export function ttlMsOf(ttl: Duration, what: string): number {
  const ms = durationMs(ttl, what);
  if (ms >= TTL_MS_MIN) return ms;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: expected at least ${TTL_MS_MIN} ms, got ${ms} ms; a number counts milliseconds, write '5s' for seconds`,
  );
}

/** The longest time for one request: ranges remember the ids of applied requests for not much longer. */
const REQUEST_MS_MAX = 60_000;

/** @throws ServiceError INVALID_ARGUMENT for anything but a duration from 1 ms to 60 s. */
export function requestMsOf(timeout: Duration, what: string): number {
  const ms = durationMs(timeout, what);
  if (ms >= 1 && ms <= REQUEST_MS_MAX) return ms;
  throw new ServiceError('INVALID_ARGUMENT', `${what}: expected 1 ms to 60 s, got ${ms} ms`);
}

function msOf(duration: Duration): number {
  if (typeof duration === 'number') return duration;
  return (typeof duration === 'string' ? parseDurationMs(duration) : undefined) ?? Number.NaN;
}
