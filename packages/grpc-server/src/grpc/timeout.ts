/** Milliseconds of the units of `grpc-timeout`. */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };
const DIGITS_MAX = 8;

/** Returns the milliseconds of a `grpc-timeout`; undefined if it is none. */
export function timeoutMs(text: string): number | undefined {
  const unit = UNITS[text.slice(-1)];
  const digits = text.length - 1;
  if (unit === undefined || digits < 1 || digits > DIGITS_MAX) return undefined;
  let value = 0;
  for (let at = 0; at < digits; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value * unit;
}
