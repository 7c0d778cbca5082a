/**
 * What arguments and options of calls may be, kind by kind. Programs without types rely on that: what is not refused here is
 * found out when a frame is encoded, together with the requests of others, or never.
 *
 * AK1. Each check throws INVALID_ARGUMENT, naming the argument, what it may be, and what was given; nothing else, whatever it
 *      is given.
 * AK2. One kind of argument is checked by one function, at every call that takes it.
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

/** Of what belongs to one, or to none (0n), as what was read says. */
export const leaseOrNone: ArgumentCheck = (value, name) => {
  if (value !== 0n) requireLease(value, name);
};

/** 0 stands for the newest, or for none. */
export const revision: ArgumentCheck = (value, name) => void requireRevision(value, name);

/** What the call itself looks into: an object of its own kind. */
export const object: ArgumentCheck = (value, name) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(name, 'an object', value);
};

/** Checked by the call itself, whose messages name more than the option. */
export const checkedByCall: ArgumentCheck = () => {};

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

/** Their bounds follow from one another. */
export const misses = count(0, COUNT_MAX);

export const list: ArgumentCheck = (value, name) => void requireList(value as readonly unknown[], name);

export const sortTarget = oneOf(['key', 'version', 'create', 'mod', 'value']);

export const sortOrder = oneOf(['ascend', 'descend']);

export function oneOf(values: readonly string[]): ArgumentCheck {
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
 * The id of a lease, or of a session, which is one. etcd's clients may choose any of 64 bits with a sign; 0 is none. More bits
 * would be cut off, and be the id of another lease.
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
