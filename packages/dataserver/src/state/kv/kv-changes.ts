import { type Bytes, binaryString, compareBytes, type Engine, ServiceError, spanContains } from '@remora/base';
import type { LockId } from '@remora/lock';
import {
  type Compare,
  type CompareAnswer,
  compareHolds,
  type DeleteOp,
  type DeleteResult,
  isLockCompare,
  type KeyRange,
  type KeyValue,
  type KvEvent,
  type KvOp,
  type KvResult,
  type PutOp,
  type PutResult,
  type RangeOp,
  type RangeResult,
  shapeRange,
  type Txn,
} from '@remora/protocol';
import { currentKey, currentSpan, historyKey, userKeyOfCurrent } from '../keys.ts';
import type { KeyOwners } from '../leases/lease-ownership.ts';
import { checkReadRevision, getCurrent, type Prefetched, type RevisionBounds } from './kv-read.ts';
import { DELETION, encodeVersion, toKeyValue, type Version, valueOfRow } from './record.ts';

/** The locks, as comparisons see them. */
export interface HeldLocks {
  /** Whether a grant of this version holds the lock. */
  isHeld(lock: LockId, version: number): boolean;
}

/**
 * For queries: the state of a lock that they could read is not of the same moment, or revision, as their other reads.
 */
export const NO_LOCKS: HeldLocks = {
  isHeld() {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      'a transaction that compares a lock is sent as a command, not as a read',
    );
  },
};

/**
 * The changes of one command, gathered while it is evaluated, then written at once or not at all.
 *
 * C1. An operation that fails (unknown lease, compacted revision) throws before anything is written.
 * C2. All changes of a command carry one revision; each key changes at most once in it, so that (key, revision) names a
 *     version. Two puts, or a put and a delete, of one key are refused (etcd's rule).
 * C3. Comparisons, including those of nested transactions, see the state before the command (etcd's `compareToPath`):
 *     the changes of a transaction do not decide which of its branches are executed. Locks are compared as they are at
 *     that moment, and no transaction changes any.
 */
export class KvChanges {
  readonly #engine: Engine;
  readonly #source: Pick<Engine, 'get'>;
  readonly #revision: number;
  readonly #owners: KeyOwners;
  readonly #bounds: RevisionBounds;
  readonly #locks: HeldLocks;
  /** By key as a binary string; `undefined` next version: deleted. */
  readonly #pending = new Map<
    string,
    { readonly key: Bytes; readonly before: Version | undefined; readonly after: Version | undefined }
  >();

  constructor(
    engine: Engine,
    options: {
      readonly revision: number;
      readonly bounds: RevisionBounds;
      readonly owners: KeyOwners;
      readonly locks: HeldLocks;
      /** Where single keys are read: from the engine, unless a query is evaluated over a view. */
      readonly source?: Pick<Engine, 'get'>;
    },
  ) {
    this.#engine = engine;
    this.#source = options.source ?? engine;
    this.#revision = options.revision;
    this.#bounds = options.bounds;
    this.#owners = options.owners;
    this.#locks = options.locks;
  }

  get any(): boolean {
    return this.#pending.size > 0;
  }

  get(key: Bytes): Version | undefined {
    const pending = this.#pending.size === 0 ? undefined : this.#pending.get(binaryString(key));
    return pending === undefined ? getCurrent(this.#source, key) : pending.after;
  }

  /** Whether there is any key in a range. */
  has(range: KeyRange, prefetched: Prefetched): boolean {
    return this.#current(range, prefetched).length > 0;
  }

  evaluate(op: KvOp, prefetched: Prefetched): KvResult {
    switch (op.type) {
      case 'put':
        return this.put(op);
      case 'delete':
        return this.delete(op, prefetched);
      case 'range':
        return this.range(op, prefetched);
      case 'txn':
        return this.txn(op.txn, prefetched);
    }
  }

  txn(txn: Txn, prefetched: Prefetched): KvResult {
    const succeeded = txn.compare.every((compare) => this.#holds(compare, prefetched));
    const results = (succeeded ? txn.success : txn.failure).map((op) => this.evaluate(op, prefetched));
    return { type: 'txn', succeeded, results };
  }

  put(op: PutOp): PutResult {
    const before = this.get(op.key);
    if ((op.ignoreValue || op.ignoreLease) && before === undefined) {
      throw new ServiceError('INVALID_ARGUMENT', 'ignore_value and ignore_lease need a key that exists', {
        details: { etcd: 'keyNotFound' },
      });
    }
    const lease = op.ignoreLease && before !== undefined ? before.lease : op.lease;
    if (lease !== 0n && !this.#owners.known(lease, op.key))
      throw new ServiceError('LEASE_NOT_FOUND', `lease ${lease} does not exist or has expired`);
    this.#change(op.key, before, {
      createRevision: before?.createRevision ?? this.#revision,
      modRevision: this.#revision,
      version: (before?.version ?? 0) + 1,
      lease,
      value: op.ignoreValue && before !== undefined ? before.value : op.value,
    });
    return { type: 'put', prev: op.prevKv && before !== undefined ? toKeyValue(op.key, before) : undefined };
  }

  delete(op: DeleteOp, prefetched: Prefetched): DeleteResult {
    const prev: KeyValue[] = [];
    const found = this.#current(op, prefetched);
    for (const kv of found) {
      this.#change(kv.key, kv, undefined);
      if (op.prevKv) prev.push(kv);
    }
    return { type: 'delete', deleted: found.length, prev };
  }

  /** Deletes one key, if it exists and still belongs to `lease`. */
  deleteOwned(key: Bytes, lease: bigint): void {
    const before = this.get(key);
    if (before !== undefined && before.lease === lease) this.#change(key, before, undefined);
  }

  range(op: RangeOp, prefetched: Prefetched): RangeResult {
    checkReadRevision(op.revision, this.#bounds);
    // A read at a revision does not see this command's own changes; a read of the current state does.
    if (op.revision > 0) return shapeRange(op, prefetched.get(op) ?? { kvs: [], count: 0 });
    if (op.end === undefined || this.#pending.size > 0) {
      const kvs = this.#current(op, prefetched);
      return shapeRange(op, { kvs, count: kvs.length });
    }
    return shapeRange(op, prefetched.get(op) ?? { kvs: [], count: 0 });
  }

  #holds(compare: Compare, prefetched: Prefetched): boolean {
    const answer = this.compare(compare, prefetched);
    // etcd: a range compare over nothing compares one absent key, except by value.
    if (isLockCompare(compare) || answer !== 'nothing') return answer === 'holds';
    return compareHolds(compare, undefined);
  }

  /** C3. */
  compare(compare: Compare, prefetched: Prefetched): CompareAnswer {
    if (isLockCompare(compare)) return this.#locks.isHeld(compare.lock, compare.version) ? 'holds' : 'fails';
    if (compare.end === undefined)
      return compareHolds(compare, getCurrent(this.#source, compare.key)) ? 'holds' : 'fails';
    const kvs = prefetched.get(compare)?.kvs ?? [];
    if (kvs.length === 0) return 'nothing';
    return kvs.every((kv) => compareHolds(compare, kv)) ? 'holds' : 'fails';
  }

  /** The current pairs of a range, including this command's own changes. */
  #current(range: KeyRange, prefetched: Prefetched): readonly KeyValue[] {
    if (range.end === undefined) {
      const version = this.get(range.key);
      return version === undefined ? [] : [toKeyValue(range.key, version)];
    }
    const fetched = prefetched.get(range)?.kvs ?? [];
    return this.#pending.size === 0 ? fetched : this.#overlay(range, fetched);
  }

  #overlay(range: KeyRange, fetched: readonly KeyValue[]): readonly KeyValue[] {
    const span = currentSpan(range);
    const merged = fetched.filter((kv) => !this.#pending.has(binaryString(kv.key)));
    for (const { key, after } of this.#pending.values()) {
      if (after !== undefined && spanContains(span, currentKey(key))) merged.push(toKeyValue(key, after));
    }
    return merged.sort((a, b) => compareBytes(a.key, b.key));
  }

  #change(key: Bytes, before: Version | undefined, after: Version | undefined): void {
    const name = binaryString(key);
    if (this.#pending.has(name)) throw new ServiceError('DUPLICATE_KEY', 'a transaction may change a key only once');
    this.#pending.set(name, { key, before, after });
  }

  /** Writes everything; events come in the order of the changes. */
  commit(onEvent: (event: KvEvent) => void): { readonly keys: number; readonly bytes: number } {
    let keys = 0;
    let bytes = 0;
    for (const { key, before, after } of this.#pending.values()) {
      onEvent(this.#write(key, before, after));
      keys += (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1);
      bytes +=
        (after === undefined ? 0 : key.length + after.value.length) -
        (before === undefined ? 0 : key.length + before.value.length);
    }
    return { keys, bytes };
  }

  /** The event shares the stored bytes: those of the command belong to a log entry or a network frame. */
  #write(key: Bytes, before: Version | undefined, after: Version | undefined): KvEvent {
    const rowKey = currentKey(key);
    const ownKey = userKeyOfCurrent(rowKey);
    if (before !== undefined) {
      this.#engine.put(historyKey(key, before.modRevision), encodeVersion(before));
      if (before.lease !== 0n && before.lease !== after?.lease) this.#owners.detach(before.lease, key);
    }
    const prev = before === undefined ? {} : { prev: toKeyValue(ownKey, before) };
    if (after === undefined) {
      this.#engine.delete(rowKey);
      this.#engine.put(historyKey(key, this.#revision), DELETION);
      const modRevision = this.#revision;
      const kv = { key: ownKey, value: EMPTY, createRevision: 0, modRevision, version: 0, lease: 0n };
      return { type: 'delete', kv, ...prev };
    }
    const row = encodeVersion(after);
    this.#engine.put(rowKey, row);
    if (after.lease !== 0n && after.lease !== before?.lease) this.#owners.attach(after.lease, key);
    return { type: 'put', kv: { ...toKeyValue(ownKey, after), value: valueOfRow(row) }, ...prev };
  }
}

const EMPTY = Buffer.alloc(0);
