/**
 * A fuzz target: a place where bytes or text from outside become values.
 *
 * T1. `decode` returns nothing, or throws an error that `expected` accepts. Anything else that it throws is a finding:
 *     a TypeError, a RangeError, a stack overflow, a `FuzzViolation`.
 * T2. If there is an encoder, a decoded value is encoded and decoded again: the two values are equal (`sameAgain`).
 */
import { isDeepStrictEqual } from 'node:util';
import { InvariantError, ServiceError } from '@remora/base';

export interface Target {
  readonly name: string;
  /** Valid inputs of every kind: the starting points of mutations. */
  corpus(): readonly Uint8Array[];
  /** Prepares what the inputs need. It is not measured with the first input. */
  readonly prepare?: () => Promise<unknown>;
  /** Takes any bytes at all (T1). */
  decode(bytes: Uint8Array): void | Promise<void>;
  expected(error: unknown): boolean;
  /** The number of inputs in the short form that runs with the unit tests. Smaller if an input takes long. */
  readonly runs?: number;
  /**
   * Memory that the target may use for any input, if it is more than for other targets. Includes garbage of the run
   * itself.
   */
  readonly memoryBaseBytes?: number;
  /**
   * Bytes of memory that one byte of input may cost. More than that means that a length was trusted before it was
   * checked.
   */
  readonly memoryFactor?: number;
}

export const RUNS_DEFAULT = 300;
export const MEMORY_BASE_DEFAULT = 16 * 1024 * 1024;
export const MEMORY_FACTOR_DEFAULT = 64;

/** The decoder broke a promise that is not about its errors. */
export class FuzzViolation extends Error {
  override readonly name = 'FuzzViolation';
}

export function isInvalidArgument(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'INVALID_ARGUMENT';
}

/** For data that a node reads from its own disk: damage there is a broken invariant. */
export function isInvariant(error: unknown): boolean {
  return error instanceof InvariantError;
}

/** For requests of clients: any refusal that a client may see. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.code !== 'INTERNAL';
}

/** T2. */
export function sameAgain<T>(value: T, again: (value: T) => T): void {
  if (!isDeepStrictEqual(plain(value), plain(again(value)))) {
    throw new FuzzViolation('what was decoded, encoded and decoded once more is another value');
  }
}

/** Converts a value for comparison: bytes of any class become text, and -0 becomes 0. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value === 0) return 0;
  if (value === null || typeof value !== 'object') return value;
  return Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .map(([name, field]) => [name, plain(field)]);
}
