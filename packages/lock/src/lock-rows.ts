/**
 * One lock's records during one command: read as they are needed, changed in place, the head written once at the end.
 *
 * W1. The head counts what exists: `waiters` rows in the queue, `marks` live or ended marks. Both zero means that no
 *     owner row exists, so the hot path (a lock without contention) reads the head and nothing else.
 * W2. Only a lock that is held has a queue: whoever vacates it hands over before `save`.
 * W3. An owner row exists exactly while its owner has a place in the queue or a mark.
 * W4. A session is attached exactly while it holds the lock or has an owner row in it.
 * W5. No step reads the whole queue: the first waiter is found by the head's sequence, an owner's place by its row.
 */
import { assert } from '@remora/base';
import { LockKeys } from './keys.ts';
import { MARKS_CLEARED_MAX, MARKS_MAX } from './limits.ts';
import {
  decodeHead,
  decodeOwner,
  decodeWaiter,
  encodeHead,
  encodeOwner,
  encodeWaiter,
  type Head,
  type Hold,
  type Mark,
  type OwnerRecord,
  type WaiterRecord,
} from './records.ts';
import type { Holder, LockId, LockView, Owner, SessionRef } from './types.ts';

const NOBODY: OwnerRecord = { sequence: 0, mark: undefined };
/** Rows read ahead at a hand-over: one, as the first waiter is nearly always alive; more once one had to be skipped. */
const SKIP_BATCH = 64;

export class LockRows {
  readonly #view: LockView;
  readonly #lock: LockId;
  readonly #keys: LockKeys;
  readonly #head: Head;
  readonly #existed: boolean;
  #changed = false;
  /** Sessions that may have nothing left in this lock (W4). */
  readonly #loose: SessionRef[] = [];

  constructor(view: LockView, lock: LockId) {
    this.#view = view;
    this.#lock = lock;
    this.#keys = new LockKeys(lock);
    const bytes = view.get(this.#keys.head);
    this.#existed = bytes !== undefined;
    this.#head = bytes === undefined ? emptyHead() : decodeHead(bytes);
  }

  get hold(): Hold | undefined {
    return this.#head.hold;
  }

  get waiters(): number {
    return this.#head.waiters;
  }

  /** Makes the owner the holder, under the revision of this command. */
  grant(grant: Pick<WaiterRecord, 'owner' | 'attempt' | 'data'>): Holder {
    assert(this.#head.hold === undefined, 'a lock is granted only when nobody holds it');
    const { owner, attempt, data } = grant;
    const holder = { owner, version: this.#view.revision, depth: 1, lockTimeMs: this.#view.wallMs, data };
    this.#view.attach(owner.session, this.#lock);
    this.setHold({ holder, attempt, firstAttempt: attempt });
    return holder;
  }

  setHold(hold: Hold): void {
    this.#head.hold = hold;
    this.#changed = true;
  }

  /** Takes the lock from its holder. The caller hands it over (W2). */
  vacate(): void {
    const hold = this.#head.hold;
    assert(hold !== undefined, 'only a lock that is held can be vacated');
    // A second grant under one revision would repeat a fencing version.
    assert(hold.holder.version < this.#view.revision, 'a grant ends under a later revision than it began');
    this.#loose.push(hold.holder.owner.session);
    this.#head.hold = undefined;
    this.#changed = true;
  }

  /** What the owner has besides the hold. */
  owner(owner: Owner): OwnerRecord {
    if (this.#head.waiters === 0 && this.#head.marks === 0) return NOBODY; // W1
    const bytes = this.#view.get(this.#keys.owner(owner));
    return bytes === undefined ? NOBODY : decodeOwner(bytes);
  }

  waiter(sequence: number): WaiterRecord {
    const bytes = this.#view.get(this.#keys.waiter(sequence));
    assert(bytes !== undefined, 'W3: a place in the queue has a row');
    return decodeWaiter(bytes);
  }

  /** Adds the owner at the end of the queue. Its position is then the number of waiters. */
  enqueue(waiter: WaiterRecord, record: OwnerRecord): void {
    const head = this.#head;
    const sequence = head.nextSequence;
    assert(Number.isSafeInteger(sequence), 'sequences of a queue are safe integers');
    this.#view.put(this.#keys.waiter(sequence), encodeWaiter(waiter));
    this.#putOwner(waiter.owner, { sequence, mark: record.mark });
    this.#view.attach(waiter.owner.session, this.#lock);
    head.nextSequence = sequence + 1;
    head.waiters += 1;
    this.#changed = true;
  }

  replaceWaiter(sequence: number, waiter: WaiterRecord): void {
    this.#view.put(this.#keys.waiter(sequence), encodeWaiter(waiter));
  }

  /** At most this many are before the waiter, itself included; exact unless some have left from the middle. */
  position(sequence: number): number {
    return Math.min(sequence - this.#head.firstSequence + 1, this.#head.waiters);
  }

  removeWaiter(owner: Owner, record: OwnerRecord): void {
    assert(record.sequence !== 0, 'only a waiter leaves the queue');
    this.#dropWaiter(record.sequence);
    this.#putOwner(owner, { sequence: 0, mark: record.mark });
  }

  /** Removes waiters from the front, one by one, for as long as the caller asks for the next. */
  *shift(): Generator<WaiterRecord> {
    let limit = 1;
    while (this.#head.waiters > 0) {
      const rows = this.#view.scan(this.#keys.waiter(this.#head.firstSequence), this.#keys.queueEnd(), limit);
      assert(rows.length > 0, 'W1: the head counts the rows of the queue');
      for (const row of rows) {
        const waiter = decodeWaiter(row.value);
        const record = this.owner(waiter.owner);
        this.#head.firstSequence = record.sequence + 1;
        this.removeWaiter(waiter.owner, record);
        yield waiter;
      }
      limit = SKIP_BATCH;
    }
  }

  /** Leaves a mark, united with a live one that is there: the later end, the higher number. */
  mark(owner: Owner, mark: Mark): void {
    const record = this.owner(owner);
    const before = record.mark;
    const live = before !== undefined && before.deadlineMs >= this.#view.timeMs;
    const attempt = Math.max(mark.attempt, live ? before.attempt : 0);
    const deadlineMs = Math.max(mark.deadlineMs, live ? before.deadlineMs : 0);
    if (before !== undefined) {
      if (before.attempt === attempt && before.deadlineMs === deadlineMs) return;
      this.#view.delete(this.#keys.mark(owner, before.deadlineMs));
      this.#head.marks -= 1;
    } else if (this.#head.marks >= MARKS_MAX) {
      this.#clearMarks({ limit: 1, endedBeforeMs: Number.POSITIVE_INFINITY });
    }
    this.#view.put(this.#keys.mark(owner, deadlineMs), encodeOwner(NOBODY));
    this.#putOwner(owner, { sequence: record.sequence, mark: { attempt, deadlineMs } });
    this.#view.attach(owner.session, this.#lock);
    const head = this.#head;
    head.marksDueMs = head.marks === 0 ? deadlineMs : Math.min(head.marksDueMs, deadlineMs);
    head.marks += 1;
    this.#changed = true;
  }

  /** Clears some of the marks whose end has passed; costs nothing while none has. */
  clearEndedMarks(): void {
    if (this.#head.marks === 0 || this.#view.timeMs <= this.#head.marksDueMs) return;
    this.#clearMarks({ limit: MARKS_CLEARED_MAX, endedBeforeMs: this.#view.timeMs });
  }

  /** Removes the session's waiters and marks, and answers with the waiters, in the order of their tokens. */
  removeSession(session: SessionRef): readonly Owner[] {
    this.#loose.push(session);
    if (this.#head.waiters === 0 && this.#head.marks === 0) return [];
    const span = this.#keys.session(session);
    const waiters: Owner[] = [];
    for (const row of this.#view.scan(span.start, span.end, 0)) {
      const owner = this.#keys.ownerOf(row.key);
      const record = decodeOwner(row.value);
      if (record.sequence !== 0) {
        this.#dropWaiter(record.sequence);
        waiters.push(owner);
      }
      if (record.mark !== undefined) this.#dropMark(owner, record.mark.deadlineMs);
      this.#view.delete(row.key);
    }
    return waiters;
  }

  /** Writes the head, or removes it with the last record (K3), and detaches sessions that have nothing left (W4). */
  save(): void {
    const head = this.#head;
    assert(head.hold !== undefined || head.waiters === 0, 'W2: only a lock that is held has a queue');
    if (head.waiters === 0) {
      head.firstSequence = 1;
      head.nextSequence = 1;
    }
    if (this.#changed) {
      const empty = head.hold === undefined && head.marks === 0;
      if (!empty) this.#view.put(this.#keys.head, encodeHead(head));
      else if (this.#existed) this.#view.delete(this.#keys.head);
    }
    for (const session of this.#loose) {
      if (!this.#sessionInUse(session)) this.#view.detach(session, this.#lock);
    }
  }

  #sessionInUse(session: SessionRef): boolean {
    const head = this.#head;
    if (head.hold !== undefined && sameSession(head.hold.holder.owner.session, session)) return true;
    if (head.waiters === 0 && head.marks === 0) return false; // W1
    const span = this.#keys.session(session);
    return this.#view.scan(span.start, span.end, 1).length > 0;
  }

  #clearMarks(which: { readonly limit: number; readonly endedBeforeMs: number }): void {
    const span = this.#keys.marks();
    const head = this.#head;
    head.marksDueMs = 0;
    // One row more than may go tells when the next mark ends.
    let left = which.limit;
    for (const row of this.#view.scan(span.start, span.end, which.limit + 1)) {
      const { owner, deadlineMs } = this.#keys.markOf(row.key);
      if (left === 0 || deadlineMs >= which.endedBeforeMs) {
        head.marksDueMs = deadlineMs;
        break;
      }
      left -= 1;
      const record = this.owner(owner);
      this.#dropMark(owner, deadlineMs);
      this.#putOwner(owner, { sequence: record.sequence, mark: undefined });
    }
    this.#changed = true;
  }

  #dropMark(owner: Owner, deadlineMs: number): void {
    this.#view.delete(this.#keys.mark(owner, deadlineMs));
    this.#head.marks -= 1;
    this.#changed = true;
  }

  #dropWaiter(sequence: number): void {
    this.#view.delete(this.#keys.waiter(sequence));
    this.#head.waiters -= 1;
    this.#changed = true;
  }

  /** Writes an owner's row, or removes it when it says nothing (W3). */
  #putOwner(owner: Owner, record: OwnerRecord): void {
    const key = this.#keys.owner(owner);
    if (record.sequence !== 0 || record.mark !== undefined) {
      this.#view.put(key, encodeOwner(record));
      return;
    }
    this.#view.delete(key);
    this.#loose.push(owner.session);
  }
}

export function sameSession(a: SessionRef, b: SessionRef): boolean {
  return a.lease === b.lease && a.incarnation === b.incarnation;
}

export function sameOwner(a: Owner, b: Owner): boolean {
  return a.token === b.token && sameSession(a.session, b.session);
}

function emptyHead(): Head {
  return { hold: undefined, waiters: 0, firstSequence: 1, nextSequence: 1, marks: 0, marksDueMs: 0 };
}
