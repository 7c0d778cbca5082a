import { ServiceError } from '@remora/base';
import { shown } from './options.ts';

/** A number of milliseconds, or a number with a unit: `'250ms'`, `'5s'`, `'2m'`, `'1h'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h'}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

/** The longest duration that a number of ms expresses exactly: some 285,000 years. */
const DURATION_MS_MAX = Number.MAX_SAFE_INTEGER;

/** @throws ServiceError INVALID_ARGUMENT for anything but a duration from 0 to `DURATION_MS_MAX`. */
export function durationMs(duration: Duration, what: string): number {
  const ms = msOf(duration);
  if (ms >= 0 && ms <= DURATION_MS_MAX) return ms;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: expected a duration, such as 250 (milliseconds), '250ms' or '5s', got ${shown(duration)}`,
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
  const match = typeof duration === 'string' ? PATTERN.exec(duration) : null;
  const unit = match?.[2] as keyof typeof UNIT_MS | undefined;
  return unit === undefined ? Number.NaN : Number(match?.[1]) * UNIT_MS[unit];
}
