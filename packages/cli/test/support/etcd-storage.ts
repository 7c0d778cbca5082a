/** The rows that etcd stores, made with etcd's messages: for tests of the import. */
import { KeyValue, Permission_Type, Role, User } from '@remora/protocol/etcd';
import { boltFile, type Rows, type WriterOptions, withHash } from './bolt-writer.ts';

export interface Change {
  readonly key: string;
  /** Undefined: the key is deleted. */
  readonly value?: string | Buffer;
  readonly lease?: bigint;
}

export interface Storage {
  /** One revision each, from 2 on. */
  readonly changes: readonly Change[];
  readonly leases?: readonly { readonly id: bigint; readonly ttlS: number }[];
  readonly users?: readonly { readonly name: string; readonly password?: string; readonly roles: readonly string[] }[];
  readonly roles?: readonly string[];
  /** As etcd 3.6 writes it. */
  readonly storageVersion?: string;
}

const b = (text: string): Buffer => Buffer.from(text);

function revisionKey(main: number, deleted = false): Buffer {
  const key = Buffer.alloc(deleted ? 18 : 17);
  key.writeBigUInt64BE(BigInt(main));
  key.write('_', 8);
  if (deleted) key.write('t', 17);
  return key;
}

export function changeRows(changes: readonly Change[]): Rows {
  return changes.map(({ key, value, lease = 0n }, i) => {
    const main = i + 2;
    const kept = { createRevision: main, modRevision: main, version: 1, lease };
    const fields = value === undefined ? {} : { ...kept, value: Buffer.from(value) };
    const none = { createRevision: 0, modRevision: 0, version: 0, lease: 0n, value: b('') };
    const row = KeyValue.encode({ ...none, ...fields, key: b(key) }).finish();
    return [revisionKey(main, value === undefined), Buffer.from(row)];
  });
}

/** The buckets of a member. */
export function bucketsOf(storage: Storage): Readonly<Record<string, Rows>> {
  const { changes, leases = [], users = [], roles = [], storageVersion } = storage;
  const meta: [Buffer, Buffer][] = [[b('consistent_index'), number64(40n)]];
  if (storageVersion !== undefined) {
    meta.push(
      [b('confState'), b('{"voters":[1]}')],
      [b('storageVersion'), b(storageVersion)],
      [b('term'), number64(2n)],
    );
  }
  return {
    key: changeRows(changes),
    meta: meta.sort(([x], [y]) => Buffer.compare(x, y)),
    lease: leases.map(({ id, ttlS }) => [
      number64(id),
      Buffer.concat([varint(8n), varint(id), varint(16n), varint(BigInt(ttlS))]),
    ]),
    members: [[b('8e9e05c52164694d'), b('{"id":10276657743932975437}')]],
    alarm: [],
    auth: [
      [b('authEnabled'), Buffer.from([users.length > 0 ? 1 : 0])],
      [b('authRevision'), number64(7n)],
    ],
    authUsers: users.map(({ name, password = '', roles: of }) => {
      const user = { name: b(name), password: b(password), roles: [...of], options: { noPassword: password === '' } };
      return [b(name), Buffer.from(User.encode(user).finish())];
    }),
    authRoles: roles.map((name) => {
      const keyPermission = [{ permType: Permission_Type.READWRITE, key: b('k'), rangeEnd: b('l') }];
      return [b(name), Buffer.from(Role.encode({ name: b(name), keyPermission }).finish())];
    }),
  };
}

/** A file of `etcdctl snapshot save`. */
export function snapshotOf(storage: Storage, options: WriterOptions = {}): Buffer {
  return withHash(boltFile(bucketsOf(storage), { inline: ['alarm', 'auth', 'meta', 'members'], ...options }));
}

function number64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}
