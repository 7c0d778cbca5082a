/**
 * Permissions in JSON.
 *
 * PJ1. A permission that an answer has is read as the same permission.
 */
import { type Bytes, jsonBytes, prefixEnd } from '@remora/base';
import { DEFAULT_NAMESPACE } from '@remora/lock';
import type { auth } from '@remora/protocol/remora';
import { type Fields, invalid } from '../fields.ts';
import type { GrantedJson, KeyPermissionJson, LockPermissionJson, PermissionsJson } from '../json/users.ts';

/** The first of all keys, as none is empty. */
const FIRST_KEY = Buffer.of(0);
/** The end of a span of all keys from its beginning on. */
const OPEN_END = Buffer.of(0);

export function permissionsJson({ keys, locks }: Pick<auth.Role, 'keys' | 'locks'>): PermissionsJson {
  return { keys: keys.map(keyPermissionJson), locks: locks.map(lockPermissionJson) };
}

function keyPermissionJson({ access, span }: auth.KeyPermission): KeyPermissionJson {
  return { access: access as KeyPermissionJson['access'], ...(span === undefined ? {} : spanJson(span)) };
}

function spanJson({ key, rangeEnd }: auth.KeySpan): Omit<KeyPermissionJson, 'access'> {
  if (rangeEnd.length === 0) return { key: jsonBytes(key) };
  const isOpen = rangeEnd.equals(OPEN_END);
  if (isOpen && key.equals(FIRST_KEY)) return { prefix: '' };
  if (rangeEnd.equals(endOfPrefix(key))) return { prefix: jsonBytes(key) };
  return { from: jsonBytes(key), ...(isOpen ? {} : { to: jsonBytes(rangeEnd) }) };
}

function lockPermissionJson({ verb, namespace, name, prefix }: auth.LockPermission): LockPermissionJson {
  const which = prefix ? { prefix: jsonBytes(name) } : { name: jsonBytes(name) };
  return { verb: verb as LockPermissionJson['verb'], namespace, ...which };
}

export function grantedJson({ role, permission }: auth.GrantedPermission): GrantedJson {
  return {
    ...(role === '' ? {} : { role }),
    ...(permission?.$case === 'keys' ? { keys: keyPermissionJson(permission.value) } : {}),
    ...(permission?.$case === 'locks' ? { locks: lockPermissionJson(permission.value) } : {}),
  };
}

/** The words of an access or a verb are checked where they are used. */
export function readKeyPermission(fields: Fields): auth.KeyPermission {
  const access = fields.required('access', fields.text('access'));
  const span = readSpan(fields);
  fields.end();
  return { access, span };
}

function readSpan(fields: Fields): auth.KeySpan {
  const [key, prefix] = [fields.bytes('key'), fields.bytes('prefix')];
  const [from, to] = [fields.bytes('from'), fields.bytes('to')];
  if (only(key, prefix, from) === undefined || (to !== undefined && from === undefined)) {
    throw invalid('keys: give exactly one of key, prefix and from; to goes with from');
  }
  if (key !== undefined) return { key: Buffer.from(key), rangeEnd: Buffer.of() };
  if (prefix !== undefined) {
    if (prefix.length === 0) return { key: FIRST_KEY, rangeEnd: OPEN_END };
    return { key: Buffer.from(prefix), rangeEnd: endOfPrefix(prefix) };
  }
  if (to?.length === 0) throw invalid('keys.to is empty; leave it out for all keys from keys.from on');
  return { key: Buffer.from(from ?? []), rangeEnd: to === undefined ? OPEN_END : Buffer.from(to) };
}

export function readLockPermission(fields: Fields): auth.LockPermission {
  const verb = fields.required('verb', fields.text('verb'));
  const namespace = fields.text('namespace') ?? DEFAULT_NAMESPACE;
  const [name, prefix] = [fields.bytes('name'), fields.bytes('prefix')];
  fields.end();
  const given = only(name, prefix);
  if (given === undefined) throw invalid('locks: give either name or prefix; an empty prefix is all locks');
  return { verb, namespace, name: Buffer.from(given), prefix: prefix !== undefined };
}

/** The one that is given; undefined if there are several, or none. */
function only(...values: readonly (Bytes | undefined)[]): Bytes | undefined {
  const given = values.filter((value) => value !== undefined);
  return given.length === 1 ? given[0] : undefined;
}

function endOfPrefix(prefix: Bytes): Buffer {
  const end = prefixEnd(prefix);
  return end.length === 0 ? OPEN_END : Buffer.from(end);
}
