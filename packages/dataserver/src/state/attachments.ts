import type { Bytes, Engine, Row, Span } from '@remora/base';
import { type LockId, lockPrefix } from '@remora/lock';
import { LOCK_SPACE } from '@remora/protocol';
import { boundsOf, intersection } from './bounds.ts';
import { attachedKeyRow, attachedKeysSpan, attachedLockRow, attachedLocksSpan, attachedTarget } from './keys.ts';

const NOTHING = Buffer.alloc(0);
/** Where the locks lie. */
export const LOCKS: Span = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

/** Some of what belongs to a lease: plain keys and locks. */
export interface Attached {
  readonly keys: readonly Bytes[];
  readonly locks: readonly LockId[];
}

/**
 * What belongs to leases: a row per plain key and per lock behind a prefix of the lease (keys.ts). Apply keeps these rows
 * in step with what they name.
 */
export class Attachments {
  readonly #engine: Engine;
  readonly #prefixOf: (id: bigint) => Buffer;

  constructor(engine: Engine, prefixOf: (id: bigint) => Buffer) {
    this.#engine = engine;
    this.#prefixOf = prefixOf;
  }

  attachKey(id: bigint, key: Bytes): void {
    this.#engine.put(attachedKeyRow(this.#prefixOf(id), key), NOTHING);
  }

  detachKey(id: bigint, key: Bytes): void {
    this.#engine.delete(attachedKeyRow(this.#prefixOf(id), key));
  }

  attachLock(id: bigint, lock: LockId): void {
    this.#engine.put(attachedLockRow(this.#prefixOf(id), lockPrefix(lock)), encodeLockId(lock));
  }

  detachLock(id: bigint, lock: LockId): void {
    this.#engine.delete(attachedLockRow(this.#prefixOf(id), lockPrefix(lock)));
  }

  keys(id: bigint): readonly Bytes[] {
    return this.#engine.scanResident(attachedKeysSpan(this.#prefixOf(id))).map(({ key }) => attachedTarget(key));
  }

  /** The first keys and locks of a lease that lie in a span of routing keys, `limit` in all; 0: all. */
  within(id: bigint, span: Span, limit = 0): Attached {
    const prefix = this.#prefixOf(id);
    const scan = (rows: Span | undefined, max: number): readonly Row[] =>
      rows === undefined || max < 0 ? [] : this.#engine.scanResident({ ...rows, limit: max });
    const locksHere = intersection(span, LOCKS);
    const keysHere = boundsOf(span).keys;
    const locks = scan(locksHere && attachedLocksSpan(prefix, locksHere), limit);
    const left = limit === 0 ? 0 : limit - locks.length;
    const keys = scan(keysHere && attachedKeysSpan(prefix, keysHere), limit > 0 && left === 0 ? -1 : left);
    return { keys: keys.map(({ key }) => attachedTarget(key)), locks: locks.map(({ value }) => decodeLockId(value)) };
  }

  any(id: bigint): boolean {
    const prefix = this.#prefixOf(id);
    const isThere = (rows: Span): boolean => this.#engine.scanResident({ ...rows, limit: 1 }).length > 0;
    return isThere(attachedKeysSpan(prefix)) || isThere(attachedLocksSpan(prefix));
  }
}

function encodeLockId(lock: LockId): Buffer {
  const namespaceBytes = Buffer.byteLength(lock.namespace);
  const value = Buffer.allocUnsafe(1 + namespaceBytes + lock.name.length);
  value[0] = namespaceBytes;
  value.write(lock.namespace, 1);
  value.set(lock.name, 1 + namespaceBytes);
  return value;
}

function decodeLockId(value: Bytes): LockId {
  const split = 1 + (value[0] ?? 0);
  return {
    namespace: Buffer.from(value.subarray(1, split)).toString('utf8'),
    name: Buffer.from(value.subarray(split)),
  };
}
