/**
 * The waiters of a lock: the queue, and the sharer that waits for its upgrade.
 *
 * W2. Only a held lock has a queue: a command that vacates the lock hands over before `save`. Only a sharer upgrades.
 * W5. No command reads the whole queue, except one that lowers the capacity of a semaphore. The head's sequence leads
 *     to the first waiter, and an owner's row to its place. Only when waiters have left from the front is the next one
 *     searched for.
 */
import { assert, type Bytes, keyAfter } from '@remora/base';
import { publicOwner } from '../public-owner.ts';
import { positionOf } from '../records/records.ts';
import { decodeWaiter, encodeWaiter, type OwnerRecord, type WaiterRecord } from '../records/row-records.ts';
import type { Owner } from '../types.ts';
import { LockHolds } from './lock-holds.ts';

/**
 * Rows read ahead at a hand-over: one at first, because usually one waiter is granted the lock, then twice as many each
 * time.
 */
const FRONT_BATCH_MAX = 64;
/** Rows read at a time when the whole queue is read. */
const QUEUE_PAGE_ROWS = 256;

export class LockQueue extends LockHolds {
  // ------------------------------------------------------------------------------------------------ upgrade

  upgrader(): WaiterRecord | undefined {
    if (!this.headRecord.upgrading) return undefined;
    const bytes = this.view.get(this.keys.upgrade());
    assert(bytes !== undefined, 'W2: a waiting upgrade has a row');
    return decodeWaiter(bytes);
  }

  setUpgrader(waiter: WaiterRecord): void {
    this.view.put(this.keys.upgrade(), encodeWaiter(waiter));
    if (!this.headRecord.upgrading) this.#tellQueued(waiter, 1);
    this.headRecord.upgrading = true;
    this.changed = true;
  }

  removeUpgrader(): void {
    this.view.delete(this.keys.upgrade());
    this.headRecord.upgrading = false;
    this.changed = true;
  }

  // ------------------------------------------------------------------------------------------------ queue

  waiter(sequence: number): WaiterRecord {
    const bytes = this.view.get(this.keys.waiter(sequence));
    assert(bytes !== undefined, 'W3: a place in the queue has a row');
    return decodeWaiter(bytes);
  }

  /** Adds the owner at the end of the queue. */
  enqueue(waiter: WaiterRecord, record: OwnerRecord): void {
    const head = this.headRecord;
    const sequence = head.nextSequence;
    assert(Number.isSafeInteger(sequence), 'sequences of a queue are safe integers');
    this.view.put(this.keys.waiter(sequence), encodeWaiter(waiter));
    this.putOwner(waiter.owner, { sequence, mark: record.mark, shareVersion: record.shareVersion });
    this.attach(waiter.owner.session);
    head.nextSequence = sequence + 1;
    head.waiters += 1;
    this.changed = true;
    this.#tellQueued(waiter, head.waiters + (head.upgrading ? 1 : 0));
  }

  #tellQueued({ owner, sinceMs, mode, permits }: WaiterRecord, position: number): void {
    this.view.onEvent?.({ type: 'queued', waiter: { owner: publicOwner(owner), position, sinceMs, mode, permits } });
    this.view.meter?.queued(mode, position);
  }

  replaceWaiter(sequence: number, waiter: WaiterRecord): void {
    this.view.put(this.keys.waiter(sequence), encodeWaiter(waiter));
  }

  /** The position of a waiter; 1 is next. An upper bound if waiters have left from the middle of the queue. */
  position(sequence: number): number {
    return positionOf(this.headRecord, sequence);
  }

  removeWaiter(owner: Owner, record: OwnerRecord): void {
    assert(record.sequence !== 0, 'only a waiter leaves the queue');
    this.dropWaiter(record.sequence);
    this.putOwner(owner, { sequence: 0, mark: record.mark, shareVersion: record.shareVersion });
  }

  /** The first waiters, one by one. The caller removes each (`removeFirst`) before it takes the next. */
  *front(): Generator<WaiterRecord> {
    let limit = 1;
    while (this.headRecord.waiters > 0) {
      const first = this.view.get(this.keys.waiter(this.headRecord.firstSequence));
      if (first !== undefined) {
        yield decodeWaiter(first);
        continue;
      }
      const rows = this.view.scan(this.keys.waiter(this.headRecord.firstSequence), this.keys.queueEnd(), limit);
      assert(rows.length > 0, 'W1: the head counts the rows of the queue');
      for (const row of rows) yield decodeWaiter(row.value);
      limit = Math.min(2 * limit, FRONT_BATCH_MAX);
    }
  }

  /**
   * All waiters, in order. The caller may remove those it has received. At most WAITERS_MAX rows, about 2 µs each.
   */
  *queued(): Generator<WaiterRecord> {
    let start: Bytes = this.keys.waiter(this.headRecord.firstSequence);
    for (let left = this.headRecord.waiters; left > 0; ) {
      const rows = this.view.scan(start, this.keys.queueEnd(), QUEUE_PAGE_ROWS);
      for (const row of rows) yield decodeWaiter(row.value);
      const last = rows.at(-1);
      assert(last !== undefined, 'W1: the head counts the rows of the queue');
      start = keyAfter(last.key);
      left -= rows.length;
    }
  }

  removeFirst({ owner }: WaiterRecord): void {
    const record = this.owner(owner);
    this.headRecord.firstSequence = record.sequence + 1;
    this.removeWaiter(owner, record);
  }

  protected dropWaiter(sequence: number): void {
    this.view.delete(this.keys.waiter(sequence));
    this.headRecord.waiters -= 1;
    this.changed = true;
  }
}
