/** Permissions on keys, as etcd's messages and Remora's have them. */
import { type Bytes, ServiceError } from '@remora/base';
import type { KeyPermission } from '@remora/protocol';

/** An end that stands for the last key. */
const OPEN_END = Buffer.of(0);

/** `rangeEnd`: as in a range request. @throws ServiceError `INVALID_ARGUMENT` if no key can be in the span */
export function toKeys(key: Buffer, rangeEnd: Buffer): Pick<KeyPermission, 'key' | 'end'> {
  const isEmpty = rangeEnd.length > 0 && rangeEnd[0] !== 0 && Buffer.compare(key, rangeEnd) >= 0;
  if (key.length === 0 || isEmpty) throw invalid('invalidAuthManagement', 'the permission covers no keys');
  return toSpan(key, rangeEnd);
}

/** Without a check: what was never granted cannot be revoked. */
export function toSpan(key: Buffer, rangeEnd: Buffer): Pick<KeyPermission, 'key' | 'end'> {
  if (rangeEnd.length === 0) return { key };
  return { key, end: rangeEnd.equals(OPEN_END) ? Buffer.alloc(0) : rangeEnd };
}

export function fromKeys({ key, end }: { readonly key: Bytes; readonly end?: Bytes }): {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
} {
  const rangeEnd = end === undefined ? Buffer.alloc(0) : end.length === 0 ? OPEN_END : Buffer.from(end);
  return { key: Buffer.from(key), rangeEnd };
}

/** @throws ServiceError `INVALID_ARGUMENT` for an empty name */
export function named(name: string, what: 'user' | 'role'): string {
  if (name !== '') return name;
  throw invalid(what === 'user' ? 'userEmpty' : 'roleEmpty', `a ${what} needs a name`);
}

/** `etcd`: the name of etcd's error. */
export function invalid(etcd: string, message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, { details: { etcd } });
}
