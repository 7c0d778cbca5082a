import { ServiceError } from '@remora/base';

/** Milliseconds, or a number with a unit: `'250ms'`, `'5s'`, `'2m'`, `'1h'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h'}`;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

/** Throws `INVALID_ARGUMENT` for anything else. */
export function durationMs(duration: Duration, what: string): number {
  if (typeof duration === 'number' && Number.isFinite(duration) && duration >= 0) return duration;
  const match = typeof duration === 'string' ? PATTERN.exec(duration) : null;
  const unit = match?.[2] as keyof typeof UNIT_MS | undefined;
  if (unit === undefined) {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `${what}: '${String(duration)}' is no duration; write 250, '250ms' or '5s'`,
    );
  }
  return Number(match?.[1]) * UNIT_MS[unit];
}
