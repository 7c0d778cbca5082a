/**
 * The owners that wait at a lock as a barrier, and those that have passed and not confirmed it (B1–B5 of
 * `procedures.ts`). Each has a row, and the head counts them.
 */

import type { LockView } from '../lock-view.ts';
import {
  type BarrierWaiterRecord,
  decodeBarrierWaiter,
  encodeBarrierWaiter,
} from '../records/barrier-waiter-record.ts';
import type { LockKeys } from '../records/keys.ts';
import type { Head } from '../records/records.ts';
import type { Owner, SessionRef } from '../types.ts';

export interface BarrierWaiter extends BarrierWaiterRecord {
  readonly owner: Owner;
}

/** What barrier waiters need of the records of a lock during one command. */
export interface BarrierLock {
  readonly view: Pick<LockView, 'get' | 'put' | 'delete' | 'scan' | 'onEvent'>;
  readonly keys: LockKeys;
  readonly head: Head;
  attach(session: SessionRef): void;
  /** The session may have nothing left in the lock. */
  loosen(session: SessionRef): void;
  /** The head has changed, and has to be written. */
  changed(): void;
}

export class BarrierWaiters {
  readonly #lock: BarrierLock;

  constructor(lock: BarrierLock) {
    this.#lock = lock;
  }

  get(owner: Owner): BarrierWaiterRecord | undefined {
    if (this.#none) return undefined;
    const row = this.#lock.view.get(this.#lock.keys.barrierWaiter(owner));
    return row && decodeBarrierWaiter(row);
  }

  put({ owner, ...record }: BarrierWaiter): void {
    const { view, keys, head } = this.#lock;
    this.#count(this.get(owner), -1);
    view.put(keys.barrierWaiter(owner), encodeBarrierWaiter(record));
    this.#count(record, 1);
    if (record.passedVersion === 0 && record.parties > 0) {
      head.parties = head.parties === 0 ? record.parties : Math.min(head.parties, record.parties);
    }
    this.#lock.attach(owner.session);
  }

  remove(owner: Owner): void {
    const before = this.get(owner);
    if (before === undefined) return;
    this.#count(before, -1);
    this.#lock.view.delete(this.#lock.keys.barrierWaiter(owner));
    this.#lock.loosen(owner.session);
  }

  /** The owners that wait, in the order of their keys. */
  waiting(): readonly BarrierWaiter[] {
    if (this.#lock.head.passing === 0) return [];
    const { start, end } = this.#lock.keys.barrierWaiters();
    return this.#scan(start, end, 0).filter(({ passedVersion }) => passedVersion === 0);
  }

  ofSession(session: SessionRef, limit: number): readonly BarrierWaiter[] {
    if (this.#none) return [];
    const { start, end } = this.#lock.keys.barrierWaitersOf(session);
    return this.#scan(start, end, limit);
  }

  /** The lowest number of parties that any waiter waits for; 0: no waiter waits for parties. */
  setParties(parties: number): void {
    if (this.#lock.head.parties === parties) return;
    this.#lock.head.parties = parties;
    this.#lock.changed();
  }

  get #none(): boolean {
    return this.#lock.head.passing === 0 && this.#lock.head.passed === 0;
  }

  #scan(start: Uint8Array, end: Uint8Array, limit: number): BarrierWaiter[] {
    const { view, keys } = this.#lock;
    return view
      .scan(start, end, limit)
      .map(({ key, value }) => ({ owner: keys.barrierWaiterOf(key), ...decodeBarrierWaiter(value) }));
  }

  #count(record: BarrierWaiterRecord | undefined, by: 1 | -1): void {
    if (record === undefined) return;
    const { head, view } = this.#lock;
    this.#lock.changed();
    if (record.passedVersion > 0) {
      head.passed += by;
      return;
    }
    head.passing += by;
    if (head.passing === 0) head.parties = 0;
    view.onEvent?.({ type: 'passing', count: head.passing });
  }
}
