/**
 * The keys of the records of a lock.
 *
 *   0x02 | length of namespace | namespace | name, escaped | 00 01 |  = the lock's prefix
 *     00                                            head: the exclusive holder, and counters
 *     01 | sequence                                 a waiter
 *     02 | lease | incarnation | token              what else an owner has: a place in the queue, a mark, a share
 *     03 | deadline | lease | incarnation | token   a mark, by its end
 *     04 | version | lease | incarnation | token    a share, by its grant
 *     05                                            the sharer that waits for its upgrade
 *     06                                            the data that a holder left
 *     07                                            the record of the last forced release
 *     08                                            the revocation in force
 *     09 | lease | incarnation | token              an owner that waits at a barrier, or has passed
 *
 * K1. All records of a lock have its prefix, and no prefix begins with that of another lock: a 00 in a name is written
 *     as 00 FF, and the name ends with 00 01 (the ordered tuple encoding of FoundationDB). Prefixes are ordered as the
 *     names are.
 * K2. Numbers in keys are non-negative doubles, big-endian: the order of their bytes is their order (IEEE 754). Times
 *     may have fractions; sequences and incarnations are safe integers.
 * K3. If any record of a lock exists, its head exists, and is its first row.
 * K4. The name of a lock is its prefix as a `binaryString`, which is made without going through bytes: nearly every
 *     command needs only that of its keys.
 */
import {
  asBuffer,
  assert,
  type Bytes,
  binaryString,
  compareBytes,
  EMPTY_BYTES,
  prefixEnd,
  type Span,
} from '@remora/base';
import { viewAround, writeText } from '../codec/binary.ts';
import { NAMESPACE_BYTES_MAX } from '../limits.ts';
import type { LockId, Owner, SessionRef } from '../types.ts';

/** The first byte of every key of the lock layer. */
export const LOCK_SPACE = 0x02;

const HEAD = 0x00;
const QUEUE = 0x01;
const OWNER = 0x02;
const MARK = 0x03;
const SHARE = 0x04;
const UPGRADE = 0x05;
const KEPT = 0x06;
const FORCED = 0x07;
const REVOCATION = 0x08;
const PASSER = 0x09;
const SESSION_BYTES = 16;

/** The span of all records of one lock, and of nothing else. A range is never split inside it. */
export function lockSpan(lock: LockId): Span {
  const start = lockPrefix(lock);
  return { start, end: prefixEnd(start) };
}

/** The prefix of all records of a lock, and of no other keys. */
export function lockPrefix(lock: LockId): Buffer {
  const key = spaceKey(lock.namespace, lock.name, 2);
  key[key.length - 2] = 0;
  key[key.length - 1] = 1;
  return key;
}

/** K4. */
export type LockName = string;

/** The same as `lockPrefix`, as a name. */
function lockName({ namespace, name }: LockId): LockName {
  const text = binaryString(name);
  const escaped = text.includes('\0') ? text.replaceAll('\0', '\0\xff') : text;
  return `${namespaceName(namespace)}${escaped}\0\x01`;
}

/** The names of a lock while a command is applied to it. */
export interface LockNames {
  readonly lock: LockName;
  /** The key of its head. */
  readonly head: string;
}

export function lockNames(lock: LockId): LockNames {
  const name = lockName(lock);
  return { lock: name, head: `${name}\0` };
}

/** The lock of a name that `lockName` made. */
export function lockOfName(name: LockName): LockId {
  return lockOfKey(Buffer.from(name, 'latin1'));
}

let lastNamespace = '';
let lastNamespaceName = '';

/** The prefix of the names of all locks of a namespace, cached for many commands in a row. */
function namespaceName(namespace: string): string {
  if (namespace !== lastNamespace || lastNamespaceName === '') {
    lastNamespace = namespace;
    lastNamespaceName = binaryString(spaceKey(namespace, EMPTY_BYTES, 0));
  }
  return lastNamespaceName;
}

/** The span of all locks of a namespace whose names begin with `prefix`, in the order of their names. */
export function namespaceSpan(namespace: string, prefix: Bytes): Span {
  const key = spaceKey(namespace, prefix, 0);
  return { start: key, end: prefixEnd(key) };
}

/** The span of all locks of the namespaces after this one; empty: of all namespaces. */
export function namespacesSpan(after: string): Span {
  const start = after === '' ? Buffer.of(LOCK_SPACE) : namespaceSpan(after, EMPTY_BYTES).end;
  return { start, end: Buffer.of(LOCK_SPACE + 1) };
}

/**
 * The first key of the lock to which a key of the lock layer belongs: the place to split a range whose middle is `key`.
 * Undefined for a key of another space.
 */
export function lockStart(key: Bytes): Bytes | undefined {
  if (key[0] !== LOCK_SPACE) return undefined;
  const end = nameEnd(key);
  return end === undefined ? undefined : key.subarray(0, end + 2);
}

/** Whether a key of the lock layer is that of a mark, by its end. */
export function isMarkKey(key: Bytes): boolean {
  const end = nameEnd(key);
  return end !== undefined && key[end + 2] === MARK;
}

/** The lock that a key belongs to. The key must be one of the lock layer's. */
export function lockOfKey(key: Bytes): LockId {
  const end = nameEnd(key);
  assert(key[0] === LOCK_SPACE && end !== undefined, 'K1: a key of the lock layer names its lock');
  const nameStart = 2 + (key[1] ?? 0);
  const namespace = Buffer.from(key.subarray(2, nameStart)).toString('utf8');
  return { namespace, name: unescaped(key, nameStart, end) };
}

/**
 * The first name of a namespace at or after a place among the keys; empty when that is the first name or, as an end,
 * after the last one.
 */
export function nameAt(namespace: string, key: Bytes): Bytes {
  const first = spaceKey(namespace, EMPTY_BYTES, 0);
  if (compareBytes(key.subarray(0, first.length), first) !== 0) return EMPTY_BYTES;
  return unescaped(key, first.length, nameEnd(key) ?? key.length);
}

function unescaped(key: Bytes, start: number, end: number): Bytes {
  const name = Buffer.alloc(end - start);
  let length = 0;
  for (let i = start; i < end; i++) {
    name[length++] = key[i] ?? 0;
    if (key[i] === 0) i++; // The FF of an escaped 00.
  }
  return name.subarray(0, length);
}

export function headKey(lock: LockId): Buffer {
  const key = spaceKey(lock.namespace, lock.name, 3);
  key[key.length - 3] = 0;
  key[key.length - 2] = 1;
  key[key.length - 1] = HEAD;
  return key;
}

/** Builds the keys of one lock. */
export class LockKeys {
  readonly head: Buffer;
  readonly #prefixLength: number;

  constructor(lock: LockId) {
    this.head = headKey(lock);
    this.#prefixLength = this.head.length - 1;
  }

  waiter(sequence: number): Buffer {
    const key = this.#key(QUEUE, 8);
    viewAround(key).setFloat64(key.byteOffset + this.#prefixLength + 1, sequence);
    return key;
  }

  queueEnd(): Buffer {
    return this.#key(OWNER, 0);
  }

  owner(owner: Owner): Buffer {
    const tokenBytes = Buffer.byteLength(owner.token);
    const key = this.#key(OWNER, SESSION_BYTES + tokenBytes);
    const at = writeSession(key, owner.session, this.#prefixLength + 1);
    writeText(key, owner.token, at, tokenBytes);
    return key;
  }

  /** The rows of the owners of one session that have a place in the queue, a mark or a share. */
  session(session: SessionRef): Span {
    const start = this.#key(OWNER, SESSION_BYTES);
    writeSession(start, session, this.#prefixLength + 1);
    return { start, end: prefixEnd(start) };
  }

  ownerOf(ownerKey: Bytes): Owner {
    return readOwner(ownerKey, this.#prefixLength + 1);
  }

  mark(owner: Owner, deadlineMs: number): Buffer {
    const tokenBytes = Buffer.byteLength(owner.token);
    const key = this.#key(MARK, 8 + SESSION_BYTES + tokenBytes);
    viewAround(key).setFloat64(key.byteOffset + this.#prefixLength + 1, deadlineMs);
    const at = writeSession(key, owner.session, this.#prefixLength + 9);
    writeText(key, owner.token, at, tokenBytes);
    return key;
  }

  share(owner: Owner, version: number): Buffer {
    const tokenBytes = Buffer.byteLength(owner.token);
    const key = this.#key(SHARE, 8 + SESSION_BYTES + tokenBytes);
    viewAround(key).setFloat64(key.byteOffset + this.#prefixLength + 1, version);
    const at = writeSession(key, owner.session, this.#prefixLength + 9);
    writeText(key, owner.token, at, tokenBytes);
    return key;
  }

  /** All shares, in the order of their grants. */
  shares(): Span {
    return { start: this.#key(SHARE, 0), end: this.#key(UPGRADE, 0) };
  }

  /** The shares of one version. */
  sharesOf(version: number): Span {
    const start = this.#key(SHARE, 8);
    viewAround(start).setFloat64(start.byteOffset + this.#prefixLength + 1, version);
    return { start, end: prefixEnd(start) };
  }

  shareOf(shareKey: Bytes): { readonly owner: Owner; readonly version: number } {
    const version = viewAround(shareKey).getFloat64(shareKey.byteOffset + this.#prefixLength + 1);
    return { version, owner: readOwner(shareKey, this.#prefixLength + 9) };
  }

  upgrade(): Buffer {
    return this.#key(UPGRADE, 0);
  }

  revocation(): Buffer {
    return this.#key(REVOCATION, 0);
  }

  kept(): Buffer {
    return this.#key(KEPT, 0);
  }

  forced(): Buffer {
    return this.#key(FORCED, 0);
  }

  barrierWaiter(owner: Owner): Buffer {
    const tokenBytes = Buffer.byteLength(owner.token);
    const key = this.#key(PASSER, SESSION_BYTES + tokenBytes);
    const at = writeSession(key, owner.session, this.#prefixLength + 1);
    writeText(key, owner.token, at, tokenBytes);
    return key;
  }

  barrierWaiters(): Span {
    return { start: this.#key(PASSER, 0), end: this.#key(PASSER + 1, 0) };
  }

  barrierWaitersOf(session: SessionRef): Span {
    const start = this.#key(PASSER, SESSION_BYTES);
    writeSession(start, session, this.#prefixLength + 1);
    return { start, end: prefixEnd(start) };
  }

  barrierWaiterOf(barrierWaiterKey: Bytes): Owner {
    return readOwner(barrierWaiterKey, this.#prefixLength + 1);
  }

  marks(): Span {
    return { start: this.#key(MARK, 0), end: this.#key(MARK + 1, 0) };
  }

  markOf(markKey: Bytes): { readonly owner: Owner; readonly deadlineMs: number } {
    const deadlineMs = viewAround(markKey).getFloat64(markKey.byteOffset + this.#prefixLength + 1);
    return { deadlineMs, owner: readOwner(markKey, this.#prefixLength + 9) };
  }

  #key(kind: number, rest: number): Buffer {
    const key = Buffer.allocUnsafe(this.#prefixLength + 1 + rest);
    this.head.copy(key, 0, 0, this.#prefixLength);
    key[this.#prefixLength] = kind;
    return key;
  }
}

function spaceKey(namespace: string, name: Bytes, rest: number): Buffer {
  const namespaceBytes = Buffer.byteLength(namespace);
  assert(namespaceBytes <= NAMESPACE_BYTES_MAX, 'a namespace was checked when its command came in');
  let zeros = 0;
  for (let i = 0; i < name.length; i++) if (name[i] === 0) zeros++;
  const key = Buffer.allocUnsafe(2 + namespaceBytes + name.length + zeros + rest);
  key[0] = LOCK_SPACE;
  key[1] = namespaceBytes;
  let at = writeText(key, namespace, 2, namespaceBytes);
  if (zeros === 0) {
    key.set(name, at);
    return key;
  }
  for (let i = 0; i < name.length; i++) {
    const byte = name[i] ?? 0;
    key[at++] = byte;
    if (byte === 0) key[at++] = 0xff;
  }
  return key;
}

/** Where the terminator of the name begins. */
function nameEnd(key: Bytes): number | undefined {
  let at = 2 + (key[1] ?? 0);
  for (;;) {
    at = key.indexOf(0, at);
    if (at < 0 || at + 1 >= key.length) return undefined;
    if (key[at + 1] === 1) return at;
    at += 2;
  }
}

function writeSession(key: Buffer, session: SessionRef, at: number): number {
  const view = viewAround(key);
  view.setBigUint64(key.byteOffset + at, session.lease);
  view.setFloat64(key.byteOffset + at + 8, session.incarnation);
  return at + SESSION_BYTES;
}

function readOwner(key: Bytes, at: number): Owner {
  assert(key.length >= at + SESSION_BYTES, 'a key of the lock layer is complete');
  const view = viewAround(key);
  const start = key.byteOffset + at;
  const session = { lease: view.getBigUint64(start), incarnation: view.getFloat64(start + 8) };
  return { session, token: asBuffer(key).toString('utf8', at + SESSION_BYTES) };
}
