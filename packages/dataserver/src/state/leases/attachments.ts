import { type Bytes, binaryString, type Engine, LazyMap, type Row, type Span } from '@remora/base';
import { type LockId, type LockNames, lockOfKey } from '@remora/lock';
import { LOCK_SPACE } from '@remora/protocol';
import { boundsOf, intersection } from '../bounds.ts';
import { attachedKeyRow, attachedKeysSpan, attachedLocksSpan, attachedTarget } from '../keys.ts';

const NOTHING = Buffer.alloc(0);
/** The number of leases whose rows' names are cached; above it all names are computed again. */
const NAMES_MAX = 10_000;
/** Where the locks lie. */
export const LOCKS: Span = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

/** Plain keys and locks that belong to a lease. */
export interface Attached {
  readonly keys: readonly Bytes[];
  readonly locks: readonly LockId[];
}

/**
 * The attachments of leases: a row per plain key and per lock behind a prefix of the lease (keys.ts). Apply keeps these
 * rows in step with what they name. A row's key holds everything; earlier programs also wrote the lock's name into its
 * value.
 */
export class Attachments {
  readonly #engine: Engine;
  readonly #prefixOf: (id: bigint) => Buffer;
  /** By lease: the common prefix of the names of its locks' rows. */
  readonly #locksNames = new LazyMap<bigint, string>();

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

  /** `isFirst`: the lock belongs to no lease yet. */
  attachLock(id: bigint, { lock, head }: LockNames, isFirst: boolean): void {
    this.#engine.link({ from: this.#locksName(id), to: lock, under: head }, isFirst);
  }

  hasLock(id: bigint, { lock, head }: LockNames): boolean {
    return this.#engine.isLinked({ from: this.#locksName(id), to: lock, under: head });
  }

  detachLock(id: bigint, { lock, head }: LockNames): void {
    this.#engine.unlink({ from: this.#locksName(id), to: lock, under: head });
  }

  #locksName(id: bigint): string {
    const known = this.#locksNames.get(id);
    if (known !== undefined) return known;
    if (this.#locksNames.size >= NAMES_MAX) this.#locksNames.clear();
    const name = binaryString(attachedLocksSpan(this.#prefixOf(id)).start);
    this.#locksNames.set(id, name);
    return name;
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
    const targets = (rows: readonly Row[]) => rows.map(({ key }) => attachedTarget(key));
    return { keys: targets(keys), locks: targets(locks).map(lockOfKey) };
  }

  any(id: bigint): boolean {
    const prefix = this.#prefixOf(id);
    const isThere = (rows: Span): boolean => this.#engine.scanResident({ ...rows, limit: 1 }).length > 0;
    return isThere(attachedKeysSpan(prefix)) || isThere(attachedLocksSpan(prefix));
  }
}
