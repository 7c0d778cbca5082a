/**
 * What etcd stores in the rows of its database.
 *
 * Source: `server/storage/mvcc/revision.go` and `server/storage/schema` of etcd 3.6; `mvcc` and `lease` of etcd 3.4
 * store the same. A field that only newer versions write is absent in older files (`storageVersion`).
 */
import { damaged } from './etcd-file-error.ts';
import { protoFields } from './proto-fields.ts';

export interface EtcdRevision {
  readonly main: number;
  /** The key was deleted at this revision. */
  readonly deleted: boolean;
}

const REVISION_BYTES = 17;
const TOMBSTONE = 't'.charCodeAt(0);
const SEPARATOR = '_'.charCodeAt(0);

/** The key of a row of the bucket `key`: `main(8) _ sub(8)`, big-endian, and a `t` behind it for a deleted key. */
export function revisionOf(key: Buffer): EtcdRevision {
  const deleted = key.length === REVISION_BYTES + 1 && key[REVISION_BYTES] === TOMBSTONE;
  if (!(deleted || key.length === REVISION_BYTES) || key[8] !== SEPARATOR) {
    throw damaged(`the bucket key has a row whose key is no revision: 0x${key.toString('hex', 0, 32)}`);
  }
  const main = Number(key.readBigUInt64BE(0));
  if (!Number.isSafeInteger(main)) throw damaged(`a revision is not plausible: ${main}`);
  return { main, deleted };
}

export interface EtcdPair {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly lease: bigint;
}

/** An `mvccpb.KeyValue`; its bytes are slices of the row. */
export function pairOf(row: Buffer): EtcdPair {
  let [key, value, lease] = [EMPTY, EMPTY, 0n];
  for (const field of protoFields(row)) {
    if (field.number === 1) key = row.subarray(field.start, field.end);
    else if (field.number === 5) value = row.subarray(field.start, field.end);
    else if (field.number === 6) lease = field.value;
  }
  if (key.length === 0) throw damaged('a row of the bucket key has no key');
  return { key, value, lease };
}

export interface EtcdLease {
  readonly id: bigint;
  /** The TTL that was granted, in seconds. */
  readonly ttlS: number;
}

/** A `leasepb.Lease`. */
export function leaseOf(row: Buffer): EtcdLease {
  let [id, ttl] = [0n, 0n];
  for (const { number, value } of protoFields(row)) {
    if (number === 1) id = value;
    else if (number === 2) ttl = value;
  }
  if (id === 0n || ttl <= 0n || ttl > TTL_S_MAX) throw damaged(`the lease ${id} has a TTL of ${ttl} s`);
  return { id, ttlS: Number(ttl) };
}

export interface EtcdUser {
  readonly name: string;
  readonly hasPassword: boolean;
  readonly roles: readonly string[];
}

/** An `authpb.User`. Its password is a bcrypt hash, which is not returned. */
export function userOf(row: Buffer): EtcdUser {
  let [name, hasPassword] = ['', false];
  const roles: string[] = [];
  for (const { number, start, end } of protoFields(row)) {
    if (number === 1) name = textOf(row.subarray(start, end));
    else if (number === 2) hasPassword = end > start;
    else if (number === 3) roles.push(textOf(row.subarray(start, end)));
  }
  return { name, hasPassword, roles };
}

export interface EtcdPermission {
  readonly access: 'read' | 'write' | 'readWrite';
  readonly key: Buffer;
  /** Empty: one key. A single zero byte: all keys from `key` on. */
  readonly rangeEnd: Buffer;
}

export interface EtcdRole {
  readonly name: string;
  readonly permissions: readonly EtcdPermission[];
}

/** An `authpb.Role`. */
export function roleOf(row: Buffer): EtcdRole {
  let name = '';
  const permissions: EtcdPermission[] = [];
  for (const { number, start, end } of protoFields(row)) {
    if (number === 1) name = textOf(row.subarray(start, end));
    else if (number === 2) permissions.push(permissionOf(row.subarray(start, end)));
  }
  return { name, permissions };
}

const ACCESS = ['read', 'write', 'readWrite'] as const;

function permissionOf(message: Buffer): EtcdPermission {
  let [type, key, rangeEnd] = [0n, EMPTY, EMPTY];
  for (const { number, value, start, end } of protoFields(message)) {
    if (number === 1) type = value;
    else if (number === 2) key = Buffer.from(message.subarray(start, end));
    else if (number === 3) rangeEnd = Buffer.from(message.subarray(start, end));
  }
  const access = ACCESS[Number(type)];
  if (access === undefined) throw damaged(`a permission has the type ${type}`);
  return { access, key, rangeEnd };
}

function textOf(bytes: Buffer): string {
  return bytes.toString('utf8');
}

const EMPTY: Buffer = Buffer.alloc(0);
/** As in etcd (`lease.MaxLeaseTTL`). */
const TTL_S_MAX = 9_000_000_000n;
