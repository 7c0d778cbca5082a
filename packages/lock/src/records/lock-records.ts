/**
 * The records of one lock during one command: the head, the rows of each owner, and the attached sessions. They are
 * read on demand and changed in place; the head is written once, at the end.
 *
 * The classes that extend this one use the records, each for one purpose: `LockHolds`, `LockQueue`, and `LockRows`,
 * which combines them. They are layers of a single object, as every command creates one.
 *
 * W1. The head counts the rows: `waiters` in the queue, `marks` (live or ended), `sharers`. If all are zero, no owner
 *     row exists, so the hot path (a lock without contention) reads only the head.
 * W3. An owner row exists exactly while its owner has a place in the queue, a mark or a share.
 * W4. A session is attached exactly while it holds the lock exclusively or has a row in it, until its end is reported.
 * W8. While the sessions are *apart*, each attached session has one thing in the lock: the exclusive hold, or one owner
 *     row. So a session that loses it has nothing left, and no search is needed. Sessions are apart when no owner has a
 *     row, and from then on until an attached session gets another thing, or an owner shares the lock, waits at it as a
 *     barrier, or is delayed.
 */
import { type Bytes, equalBytes } from '@remora/base';
import { BarrierWaiters } from '../barrier/barrier-waiters.ts';
import { sameSession } from '../identity.ts';
import type { LockView } from '../lock-view.ts';
import type { ForcedRelease, LockId, Owner, SessionRef } from '../types.ts';
import { LockKeys, type LockNames, lockNames } from './keys.ts';
import { Marks } from './marks.ts';
import { keepData, keptData, recordForced } from './persisted-rows.ts';
import { emptyHead, type Head } from './records.ts';
import { decodeOwner, encodeOwner, type Mark, NOTHING_OWNED, type OwnerRecord } from './row-records.ts';
import { headOf, storedHead } from './stored-head.ts';

export class LockRecords {
  protected readonly view: LockView;
  protected readonly names: LockNames;
  protected readonly headRecord: Head;
  /** The head has changed, and has to be written. */
  protected changed = false;
  readonly #lock: LockId;
  #keys: LockKeys | undefined;
  readonly #existed: boolean;
  /** No session is attached for certain: the lock did not exist (K3, W4), and none was attached since. */
  #unattached: boolean;
  /** The sessions were apart when the command began, and no attached session has got another thing since (W8). */
  #apart: boolean;
  /** Sessions that may have nothing left in this lock (W4). */
  #loose: SessionRef[] | undefined;

  constructor(view: LockView, lock: LockId) {
    this.view = view;
    this.names = lockNames(lock);
    this.#lock = lock;
    const stored = view.getNamed(this.names.head);
    this.#existed = stored !== undefined;
    this.#unattached = !this.#existed;
    this.headRecord = stored === undefined ? emptyHead() : headOf(stored);
    this.#apart = this.headRecord.apart || (this.hasNoOwners && this.#hasPlainHolds);
  }

  /** The keys of the other rows; most commands need none. */
  protected get keys(): LockKeys {
    this.#keys ??= new LockKeys(this.#lock);
    return this.#keys;
  }

  /** The counters of the lock, and its exclusive holder. */
  get head(): Readonly<Head> {
    return this.headRecord;
  }

  get held(): boolean {
    return this.headRecord.hold !== undefined || this.headRecord.sharers > 0;
  }

  // ------------------------------------------------------------------------------------------------ owners

  /** What the owner has besides an exclusive hold. */
  owner(owner: Owner): OwnerRecord {
    if (this.hasNoOwners) return NOTHING_OWNED;
    const bytes = this.view.get(this.keys.owner(owner));
    return bytes === undefined ? NOTHING_OWNED : decodeOwner(bytes);
  }

  /** Writes an owner's row, or removes it when it is empty (W3). */
  protected putOwner(owner: Owner, record: OwnerRecord): void {
    const key = this.keys.owner(owner);
    if (record.sequence !== 0 || record.mark !== undefined || record.shareVersion !== 0) {
      this.view.put(key, encodeOwner(record));
      return;
    }
    this.view.delete(key);
    this.loosen(owner.session);
  }

  /** W1. Whether no owner has a row. */
  protected get hasNoOwners(): boolean {
    const { waiters, marks, sharers } = this.headRecord;
    return waiters === 0 && marks === 0 && sharers === 0;
  }

  // ------------------------------------------------------------------------------------------------ sessions

  /** Attaches a session that has got something in the lock (W4). */
  protected attach(session: SessionRef): void {
    if (this.#apart) {
      if (this.#tighten(session)) return;
      this.#apart = this.#unattached || !this.view.isAttached(session, this.names); // W8
    }
    this.view.attach(session, this.names, this.#unattached);
    this.#unattached = false;
  }

  /** Returns whether the session had lost its only thing in the lock, and stays attached for the new one. */
  #tighten(session: SessionRef): boolean {
    const left = this.#loose?.filter((loose) => !sameSession(loose, session));
    if (left === undefined || left.length === this.#loose?.length) return false;
    this.#loose = left;
    return true;
  }

  /** W8. */
  get #areApart(): boolean {
    return this.#apart && this.#hasPlainHolds;
  }

  /** Whether nobody shares the lock, waits at it as a barrier, or is delayed. */
  get #hasPlainHolds(): boolean {
    return this.headRecord.sharers === 0 && this.headRecord.delayed === 0 && !this.hasBarrierWaiters;
  }

  /** W4. Checks the session when the command has been applied. */
  protected loosen(session: SessionRef): void {
    this.#loose ??= [];
    this.#loose.push(session);
  }

  #sessionInUse(session: SessionRef): boolean {
    const { hold } = this.headRecord;
    if (hold !== undefined && !hold.delayed && sameSession(hold.holder.owner.session, session)) return true;
    if (this.hasBarrierWaiters && this.barrierWaiters.ofSession(session, 1).length > 0) return true;
    if (this.hasNoOwners) return false;
    const span = this.keys.session(session);
    return this.view.scan(span.start, span.end, 1).length > 0;
  }

  // ------------------------------------------------------------------------------------------------ marks

  mark(owner: Owner, mark: Mark): void {
    this.marks.leave(owner, mark);
    this.attach(owner.session);
  }

  /** Clears some of the marks whose end has passed. Reads nothing while none has. */
  clearEndedMarks(): void {
    if (this.headRecord.marks > 0 && this.view.timeMs > this.headRecord.marksDueMs) this.marks.clearEnded();
  }

  protected get marks(): Marks {
    return new Marks({
      ...{ view: this.view, keys: this.keys, head: this.headRecord },
      owner: (owner) => this.owner(owner),
      putOwner: (owner, record) => this.putOwner(owner, record),
      changed: () => {
        this.changed = true;
      },
    });
  }

  // ------------------------------------------------------------------------------------------------ barrier waiters

  /** The owners that wait at the lock as a barrier, or have passed. */
  get barrierWaiters(): BarrierWaiters {
    return new BarrierWaiters({
      ...{ view: this.view, keys: this.keys, head: this.headRecord },
      attach: (session) => this.attach(session),
      loosen: (session) => this.loosen(session),
      changed: () => {
        this.changed = true;
      },
    });
  }

  protected get hasBarrierWaiters(): boolean {
    return this.headRecord.passing > 0 || this.headRecord.passed > 0;
  }

  // ------------------------------------------------------------------------------------------------ persisted rows

  get keptData(): Bytes {
    return keptData(this.view, this.keys, this.headRecord);
  }

  /** Replaces the kept data; empty: none are kept any more. */
  keepData(data: Bytes): void {
    const { onEvent } = this.view;
    if (onEvent !== undefined && !equalBytes(this.keptData, data)) {
      onEvent({ type: 'kept', data: data.length > 0 ? data : undefined });
    }
    if (keepData(this.view, this.keys, { head: this.headRecord, data })) this.changed = true;
  }

  /** Replaces the record of a forced release; undefined deletes it. */
  recordForced(forced: ForcedRelease | undefined): void {
    if (forced === undefined && !this.headRecord.forcedOnRecord) return;
    this.view.onEvent?.({ type: 'recorded', forced });
    if (recordForced(this.view, this.keys, { head: this.headRecord, forced })) this.changed = true;
  }

  // ------------------------------------------------------------------------------------------------ end of the command

  /** Writes the head, or removes it with the last record (K3), and detaches sessions that have nothing left (W4). */
  protected write(): void {
    const head = this.headRecord;
    const apart = this.#areApart;
    if (this.changed) {
      head.apart = apart && !this.hasNoOwners;
      const isLeft = head.marks > 0 || head.passed > 0 || head.capacity > 0 || head.keepsData || head.forcedOnRecord;
      if (this.held || isLeft) this.view.putNamed(this.names.head, storedHead(head));
      else if (this.#existed) this.view.deleteNamed(this.names.head);
    }
    if (this.#loose === undefined) return;
    for (const session of this.#loose) {
      if (apart || !this.#sessionInUse(session)) this.view.detach(session, this.names);
    }
  }
}
