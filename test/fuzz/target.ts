/**
 * What is fuzzed: a place where bytes or text from outside become values.
 *
 * T1. `decode` gives nothing back or throws an error that `expected` knows. Anything else that it throws is a finding:
 *     a TypeError, a RangeError, an exhausted stack, a `FuzzViolation` of its own.
 * T2. What decodes is encoded and decoded again, where there is an encoder: the two values are equal (`sameAgain`).
 */
import { isDeepStrictEqual } from 'node:util';
import { InvariantError, ServiceError } from '@remora/base';

export interface Target {
  readonly name: string;
  /** Valid inputs of every kind: what mutations start from. */
  corpus(): readonly Uint8Array[];
  /** What must be there before the first input, and is not measured with it. */
  readonly prepare?: () => Promise<unknown>;
  /** Takes any bytes at all (T1). */
  decode(bytes: Uint8Array): void | Promise<void>;
  expected(error: unknown): boolean;
  /** Inputs in the short form that runs with the unit tests. Fewer where one takes long. */
  readonly runs?: number;
  /** What it may use whatever the input, where that is more than others do; garbage of the run itself is in it. */
  readonly memoryBaseBytes?: number;
  /** Bytes of memory that one byte of input may cost. Above it, a length was trusted before it was checked. */
  readonly memoryFactor?: number;
}

export const RUNS_DEFAULT = 300;
export const MEMORY_BASE_DEFAULT = 16 * 1024 * 1024;
export const MEMORY_FACTOR_DEFAULT = 64;

/** The decoder broke a promise that is not about what it throws. */
export class FuzzViolation extends Error {
  override readonly name = 'FuzzViolation';
}

export function isInvalidArgument(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'INVALID_ARGUMENT';
}

/** For what a node reads from its own disk: damage there is a broken invariant. */
export function isInvariant(error: unknown): boolean {
  return error instanceof InvariantError;
}

/** For requests of clients: any refusal that a client is to see. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.code !== 'INTERNAL';
}

/** T2. */
export function sameAgain<T>(value: T, again: (value: T) => T): void {
  if (!isDeepStrictEqual(plain(value), plain(again(value)))) {
    throw new FuzzViolation('what was decoded, encoded and decoded once more is another value');
  }
}

/** A value for comparing: bytes of whatever class as text, and no difference between 0 and -0. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value === 0) return 0;
  if (value === null || typeof value !== 'object') return value;
  return Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .map(([name, field]) => [name, plain(field)]);
}
