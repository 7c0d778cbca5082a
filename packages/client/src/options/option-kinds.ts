/**
 * The kinds of arguments and options, each with its check. Programs without types rely on these checks: a wrong value
 * that passes here fails when its frame is encoded, together with the other requests in it, or never.
 *
 * AK1. A check throws INVALID_ARGUMENT, naming the argument, what is allowed and what was passed. It throws nothing
 *      else, whatever value it gets.
 * AK2. One function checks one kind of argument, for every call that takes it.
 */
import { ServiceError } from '@remora/base';
import { LEASE_MAX, PERMITS_MAX, SHARERS_MAX } from '@remora/lock';
import { type BytesLike, requireBytes, requireText } from '../kv/keys.ts';
import { requireSignal } from '../transport/abort.ts';
import { type Duration, durationMs, ttlMsOf } from './duration.ts';
import { type ArgumentCheck, requireAttributes, requireCount, shown } from './options.ts';

export const COUNT_MAX = Number.MAX_SAFE_INTEGER;
const LEASE_MIN = -(2n ** 63n);

export const flag: ArgumentCheck = (value, name) => {
  if (typeof value !== 'boolean') throw wrong(name, 'true or false', value);
};

export const text: ArgumentCheck = (value, name) => void requireText(value as string, name);

/** Also an empty text. */
export const textOrNone: ArgumentCheck = (value, name) => {
  if (value !== '') requireText(value as string, name);
};

export const bytes: ArgumentCheck = (value, name) => requireBytes(value as BytesLike, name);

export const duration: ArgumentCheck = (value, name) => void durationMs(value as Duration, name);

export const ttl: ArgumentCheck = (value, name) => void ttlMsOf(value as Duration, name);

export const ttlOrNever: ArgumentCheck = (value, name) => {
  if (value !== 'never') ttl(value, name);
};

export const signal: ArgumentCheck = (value) => requireSignal(value as AbortSignal);

export const callback: ArgumentCheck = (value, name) => requireFunction(value, name);

export const attributes: ArgumentCheck = (value) => requireAttributes(value as Record<string, string>);

export const leaseId: ArgumentCheck = (value, name) => void requireLease(value, name);

/** The id of a lease, or 0n for none, as reads return it. */
export const leaseOrNone: ArgumentCheck = (value, name) => {
  if (value !== 0n) requireLease(value, name);
};

/** A revision; 0 means the newest, or none. */
export const revision: ArgumentCheck = (value, name) => void requireRevision(value, name);

/** An object, whose fields the call checks itself. */
export const object: ArgumentCheck = (value, name) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(name, 'an object', value);
};

/** Checked by the call itself, whose messages name more than the option. */
export const checkedByCall: ArgumentCheck = () => {};

/** Also a negative one. */
export const wholeNumber = count(-COUNT_MAX, COUNT_MAX);

export function count(min: number, max: number): ArgumentCheck {
  return (value, name) => void requireCount(value as number, name, { min, max });
}

export const permits: ArgumentCheck = (value) => {
  requireCount(value as number, 'permits to acquire', { min: 1, max: PERMITS_MAX });
};

export const capacity: ArgumentCheck = (value) => {
  requireCount(value as number, 'the permits of a semaphore', { min: 1, max: PERMITS_MAX });
};

export const parties: ArgumentCheck = (value) => {
  requireCount(value as number, 'the parties of a double barrier', { min: 1, max: SHARERS_MAX });
};

export const fencing: ArgumentCheck = (value) => {
  requireCount(value as number, 'a fencing version', { min: 0, max: COUNT_MAX });
};

/** Missed heartbeats of a condition. `conditionRefusal` checks their bounds, which depend on one another. */
export const misses = count(0, COUNT_MAX);

export const list: ArgumentCheck = (value, name) => void requireList(value as readonly unknown[], name);

export const sortTarget = oneOf(['key', 'version', 'createRevision', 'modRevision', 'value']);

export const sortOrder = oneOf(['ascend', 'descend']);

export const lockForm = oneOf(['recipe', 'etcd3']);

function oneOf(values: readonly string[]): ArgumentCheck {
  return (value, name) => {
    if (!values.includes(value as string)) throw wrong(name, `one of ${values.join(', ')}`, value);
  };
}

export function requireFunction(value: unknown, name: string): void {
  if (typeof value !== 'function') throw wrong(name, 'a function', value);
}

export function requireList<Item>(value: readonly Item[], name: string): readonly Item[] {
  if (!Array.isArray(value)) throw wrong(name, 'a list', value);
  return value;
}

/**
 * The id of a lease or a session. etcd clients may choose any signed 64-bit number except 0. Further bits would be cut
 * off, and the result would be the id of another lease.
 */
export function requireLease(value: unknown, name: string): bigint {
  if (typeof value === 'bigint' && value !== 0n && value >= LEASE_MIN && value <= LEASE_MAX) return value;
  throw wrong(name, 'the id of a lease, a bigint of 64 bits other than 0n', value);
}

export function requireRevision(value: unknown, name: string, min = 0): number {
  return requireCount(value as number, name, { min, max: COUNT_MAX });
}

function wrong(name: string, expected: string, value: unknown): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `${name}: expected ${expected}, got ${shown(value)}`);
}
