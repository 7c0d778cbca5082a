import { ServiceError } from '@remora/base';

/**
 * Checks for values from the wire or from disk. Every failure throws `INVALID_ARGUMENT`; code behind a codec does not
 * check shapes again (conventions 5).
 */
export function invalid(what: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `malformed message: ${what}`);
}

/** A positional record of exactly `length` fields. */
export function asFields(raw: unknown, length: number, what: string): readonly unknown[] {
  if (!Array.isArray(raw) || raw.length !== length) throw invalid(what);
  return raw;
}

export function asList<T>(raw: unknown, what: string, decode: (item: unknown) => T): T[] {
  if (!Array.isArray(raw)) throw invalid(what);
  const out = new Array<T>(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = decode(raw[i]);
  return out;
}

export function asText(raw: unknown, what: string): string {
  if (typeof raw !== 'string') throw invalid(what);
  return raw;
}

/** A revision, term, index, id or count: a safe integer of 0 or more (conventions 6). */
export function asCount(raw: unknown, what: string): number {
  if (!Number.isSafeInteger(raw) || (raw as number) < 0) throw invalid(what);
  return raw as number;
}

/** A time or a duration in ms; fractions are allowed. */
export function asMs(raw: unknown, what: string): number {
  if (typeof raw !== 'number' || !Number.isFinite(raw)) throw invalid(what);
  return raw;
}
