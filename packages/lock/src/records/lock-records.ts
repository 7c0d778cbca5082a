/**
 * One lock's records during one command: the head, what each owner has, and which sessions are attached. Read as they
 * are needed, changed in place, the head written once at the end.
 *
 * What is done with them is in the classes that extend this one, each of one matter: `LockHolds`, `LockQueue`, and
 * `LockRows`, which is all of it. They are layers of one object, as every command makes one.
 *
 * W1. The head counts what exists: `waiters` rows in the queue, `marks` live or ended marks, `sharers` rows of those
 *     who share the lock. All zero means that no owner row exists, so the hot path (a lock without contention) reads
 *     the head and nothing else.
 * W3. An owner row exists exactly while its owner has a place in the queue, a mark or a share.
 * W4. A session is attached exactly while it holds the lock alone or has a row in it, until its end is told.
 * W8. While its sessions are *apart*, each that is attached has one thing in the lock: it has it alone, or one owner
 *     row. So whoever loses that has nothing left, and nobody needs to look for more. They are when no owner has a row,
 *     and from then on until one that is attached gets another thing, or anybody shares the lock, passes it or is
 *     delayed.
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
  /** The head is to be written. */
  protected changed = false;
  readonly #lock: LockId;
  #keys: LockKeys | undefined;
  readonly #existed: boolean;
  /** Certainly no session is attached: nothing existed of the lock (K3, W4), and nobody was attached since. */
  #unattached: boolean;
  /** They were apart when the command began, and no session that was attached has got another thing since (W8). */
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

  /** Of the other rows: most commands need none. */
  protected get keys(): LockKeys {
    this.#keys ??= new LockKeys(this.#lock);
    return this.#keys;
  }

  /** Counters of the lock, and who has it alone. */
  get head(): Readonly<Head> {
    return this.headRecord;
  }

  get held(): boolean {
    return this.headRecord.hold !== undefined || this.headRecord.sharers > 0;
  }

  // ------------------------------------------------------------------------------------------------ owners

  /** What the owner has besides a hold for itself alone. */
  owner(owner: Owner): OwnerRecord {
    if (this.hasNoOwners) return NOTHING_OWNED;
    const bytes = this.view.get(this.keys.owner(owner));
    return bytes === undefined ? NOTHING_OWNED : decodeOwner(bytes);
  }

  /** Writes an owner's row, or removes it when it says nothing (W3). */
  protected putOwner(owner: Owner, record: OwnerRecord): void {
    const key = this.keys.owner(owner);
    if (record.sequence !== 0 || record.mark !== undefined || record.shareVersion !== 0) {
      this.view.put(key, encodeOwner(record));
      return;
    }
    this.view.delete(key);
    this.loosen(owner.session);
  }

  /** W1. No owner has a row. */
  protected get hasNoOwners(): boolean {
    const { waiters, marks, sharers } = this.headRecord;
    return waiters === 0 && marks === 0 && sharers === 0;
  }

  // ------------------------------------------------------------------------------------------------ sessions

  /** The session has got something in the lock (W4). */
  protected attach(session: SessionRef): void {
    if (this.#apart) {
      if (this.#tighten(session)) return;
      this.#apart = this.#unattached || !this.view.isAttached(session, this.names); // W8
    }
    this.view.attach(session, this.names, this.#unattached);
    this.#unattached = false;
  }

  /** Whether the session had lost the only thing that it had, and stays attached for what it got instead. */
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

  /** Nobody shares the lock, passes it or keeps it by a delay. */
  get #hasPlainHolds(): boolean {
    return this.headRecord.sharers === 0 && this.headRecord.delayed === 0 && !this.hasBarrierWaiters;
  }

  /** W4. To be looked at when the command has been applied. */
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

  /** Clears some of the marks whose end has passed; costs nothing while none has. */
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

  /** Those who wait without queueing, or have. */
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

  // ------------------------------------------------------------------------------------------------ left behind

  get keptData(): Bytes {
    return keptData(this.view, this.keys, this.headRecord);
  }

  /** No bytes: nothing is kept any more. */
  keepData(data: Bytes): void {
    const { onEvent } = this.view;
    if (onEvent !== undefined && !equalBytes(this.keptData, data)) {
      onEvent({ type: 'kept', data: data.length > 0 ? data : undefined });
    }
    if (keepData(this.view, this.keys, { head: this.headRecord, data })) this.changed = true;
  }

  /** Who has taken the lock by force; undefined: that is not on record any more. */
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
