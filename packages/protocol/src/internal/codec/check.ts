import { type Bytes, ServiceError } from '@remora/base';

/**
 * Checks for values that came from the wire or from disk. Everything that fails throws `INVALID_ARGUMENT`; nothing
 * behind a codec checks shapes again (conventions 5).
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

export function asBytes(raw: unknown, what: string): Bytes {
  if (!(raw instanceof Uint8Array)) throw invalid(what);
  return raw;
}

export function asText(raw: unknown, what: string): string {
  if (typeof raw !== 'string') throw invalid(what);
  return raw;
}

export function asBool(raw: unknown, what: string): boolean {
  if (typeof raw !== 'boolean') throw invalid(what);
  return raw;
}

/** A revision, term, index, id or count: a safe integer of 0 or more (conventions 6). */
export function asCount(raw: unknown, what: string): number {
  if (!Number.isSafeInteger(raw) || (raw as number) < 0) throw invalid(what);
  return raw as number;
}

/** By how much a count is higher, or lower. */
export function asDifference(raw: unknown, what: string): number {
  if (!Number.isSafeInteger(raw)) throw invalid(what);
  return raw as number;
}

/** A time or a duration in ms; fractions are allowed. */
export function asMs(raw: unknown, what: string): number {
  if (typeof raw !== 'number' || !Number.isFinite(raw)) throw invalid(what);
  return raw;
}

const INT64_MIN = -(1n << 63n);
const INT64_MAX = (1n << 63n) - 1n;

/** A lease id. It travels as the shortest integer that holds it and is a `bigint` everywhere else (conventions 6). */
export function asLease(raw: unknown, what: string): bigint {
  if (raw === 0) return 0n;
  if (typeof raw === 'bigint' && raw >= INT64_MIN && raw <= INT64_MAX) return raw;
  if (Number.isSafeInteger(raw)) return BigInt(raw as number);
  throw invalid(what);
}

/** The usual "no lease" costs one byte. */
export function leaseToWire(lease: bigint): bigint | number {
  return lease === 0n ? 0 : lease;
}

export function asTextMap(raw: unknown, what: string): Readonly<Record<string, string>> {
  if (!Array.isArray(raw) || raw.length % 2 !== 0) throw invalid(what);
  const out: Record<string, string> = Object.create(null);
  for (let i = 0; i < raw.length; i += 2) out[asText(raw[i], what)] = asText(raw[i + 1], what);
  return { ...out };
}

export function textMapToWire(map: Readonly<Record<string, string>>): unknown[] {
  return Object.entries(map).flat();
}

/** A closed set of words that travel as their position. Append only: a position is part of the wire format. */
export interface WireWords<Word extends string> {
  encode(word: Word): number;
  decode(raw: unknown): Word;
}

export function wireWords<const Word extends string>(what: string, words: readonly Word[]): WireWords<Word> {
  const positions = new Map<string, number>(words.map((word, i) => [word, i]));
  return {
    encode(word) {
      const position = positions.get(word);
      if (position === undefined) throw invalid(what);
      return position;
    },
    decode(raw) {
      const word = typeof raw === 'number' ? words[raw] : undefined;
      if (word === undefined) throw invalid(what);
      return word;
    },
  };
}
