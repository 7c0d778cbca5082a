/**
 * One lock's records during one command: read as they are needed, changed in place, the head written once at the end.
 *
 * W1. The head counts what exists: `waiters` rows in the queue, `marks` live or ended marks, `sharers` rows of those who
 *     share the lock. All zero means that no owner row exists, so the hot path (a lock without contention) reads the
 *     head and nothing else.
 * W2. Only a lock that is held has a queue: whoever vacates it hands over before `save`. Only who shares it upgrades.
 * W3. An owner row exists exactly while its owner has a place in the queue, a mark or a share.
 * W4. A session is attached exactly while it holds the lock alone or has a row in it, until its end is told.
 * W5. No step reads the whole queue: the first waiter is found by the head's sequence, an owner's place by its row.
 * W6. One owner has the lock alone (the head says who), or any number share it (a row for each): never both. Of a
 *     semaphore the permits of all who share it are counted in the head.
 * W7. A hold that is delayed is all that its owner has: an owner row, if it shares the lock, says nothing else. Its lease's
 *     id may be another session's by now, and stays attached as it is. The head counts those that are.
 */
import { assert, type Bytes, equalBytes } from '@remora/base';
import type { LockEvent } from './events.ts';
import { sameOwner, sameSession } from './identity.ts';
import { LockKeys } from './keys.ts';
import { keepData, keptData, recordForced } from './left-behind.ts';
import { SHARERS_MAX } from './limits.ts';
import { Marks } from './marks.ts';
import type { GrantEnd } from './meter.ts';
import { Passers } from './passers.ts';
import { decodeHead, emptyHead, encodeHead, type Head, type Hold, positionOf, stateOfHolder } from './records.ts';
import { readRevocation, writeRevocation } from './revocation-row.ts';
import {
  decodeOwner,
  decodeWaiter,
  encodeOwner,
  encodeShare,
  encodeWaiter,
  type Mark,
  NOTHING_OWNED,
  type OwnerRecord,
  shareAt,
  type WaiterRecord,
} from './row-records.ts';
import type { ForcedRelease, HolderState, LockId, LockView, Owner, Revocation, SessionRef } from './types.ts';

/** Rows read ahead at a hand-over: one at first, as one waiter is mostly all that is granted, then more and more. */
const FRONT_BATCH_MAX = 64;

/** What is granted, to whom. */
export type GrantRequest = Pick<
  WaiterRecord,
  'owner' | 'mode' | 'permits' | 'attempt' | 'data' | 'keepData' | 'delayMs'
>;

/** What a session had in the lock that is to be told. */
export interface RemovedSession {
  /** In the order of their tokens. */
  readonly waiters: readonly Owner[];
  /** The same of those who waited without queueing. */
  readonly passing: readonly Owner[];
  readonly delayed: readonly Hold[];
}

export interface Conversion {
  readonly mode: 'exclusive' | 'shared';
  readonly upgradeAttempt: number;
  /** Since when it was waiting for this, in wall time; absent: it was not. */
  readonly sinceMs?: number;
}

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

  /** Counters of the lock, and who has it alone. */
  get head(): Readonly<Head> {
    return this.#head;
  }

  get held(): boolean {
    return this.#head.hold !== undefined || this.#head.sharers > 0;
  }

  // ------------------------------------------------------------------------------------------------ holders

  /** What the owner holds; a hold that is delayed is its no longer. */
  holdOf(owner: Owner): Hold | undefined {
    const hold = this.#anyHoldOf(owner);
    return hold?.delayed ? undefined : hold;
  }

  delayedHold(owner: Owner, version: number): Hold | undefined {
    const hold = this.#head.delayed === 0 ? undefined : this.#anyHoldOf(owner);
    return hold?.delayed && hold.holder.version === version ? hold : undefined;
  }

  #anyHoldOf(owner: Owner): Hold | undefined {
    const { hold } = this.#head;
    if (hold !== undefined) return sameOwner(hold.holder.owner, owner) ? hold : undefined;
    const { shareVersion } = this.owner(owner);
    return shareVersion === 0 ? undefined : this.#share(owner, shareVersion);
  }

  /** One of those who hold it; of those who share it the first, or one that is not `except`. */
  anyHold(except?: Owner): Hold | undefined {
    return (
      this.#head.hold ?? this.shares(2).find(({ holder }) => except === undefined || !sameOwner(holder.owner, except))
    );
  }

  /** Those who share it, in the order of their grants, at most `limit` of them (0: all). */
  shares(limit: number): readonly Hold[] {
    if (this.#head.sharers === 0) return [];
    const { start, end } = this.#keys.shares();
    return this.#view.scan(start, end, limit).map((row) => shareAt(this.#keys, row));
  }

  /** Whether there is no room for anybody, whatever is asked for. */
  get full(): boolean {
    const { hold, permits, capacity } = this.#head;
    return hold !== undefined || (capacity > 0 && permits >= capacity);
  }

  /** Whether there is room beside those who hold it. */
  fits({ mode, permits }: Pick<GrantRequest, 'mode' | 'permits'>): boolean {
    const head = this.#head;
    if (mode === 'exclusive') return !this.held;
    if (head.hold !== undefined || head.sharers >= SHARERS_MAX) return false;
    return mode !== 'permits' || head.permits + permits <= head.capacity;
  }

  /** Makes the owner a holder, under the revision of this command. `sinceMs`: the wall time since when it waited. */
  grant(request: GrantRequest, sinceMs?: number): Hold {
    const { owner, mode, permits, attempt, keepData, delayMs } = request;
    assert(mode !== 'upgrade' && this.fits(request), 'W6: a lock is granted only where there is room');
    const data = keepData && request.data.length === 0 ? this.keptData : request.data; // D1
    const holder = { owner, version: this.#view.revision, depth: 1, lockTimeMs: this.#view.wallMs, data };
    const hold: Hold = {
      holder,
      mode,
      permits,
      attempt,
      firstAttempt: attempt,
      upgradeAttempt: 0,
      keepData,
      delayMs,
      delayed: false,
    };
    this.#view.attach(owner.session, this.#lock);
    this.#add(hold);
    this.#view.onEvent?.({ type: 'acquired', holder: stateOfHolder(hold), waited: sinceMs !== undefined });
    this.#view.meter?.granted(hold.mode, this.#msSince(sinceMs));
    return hold;
  }

  /** Changes what is known of a hold: its depth and its numbers. */
  setHold(hold: Hold): void {
    this.#tellChange(hold);
    if (hold.mode === 'exclusive') this.#head.hold = hold;
    else this.#view.put(this.#keys.share(hold.holder.owner, hold.holder.version), encodeShare(hold));
    this.#changed = true;
  }

  /** What cannot be seen of a hold is no event (E2). */
  #tellChange(hold: Hold): void {
    if (this.#view.onEvent === undefined) return;
    const before = this.holdOf(hold.holder.owner);
    const same =
      before?.delayed === hold.delayed &&
      before.holder.depth === hold.holder.depth &&
      equalBytes(before.holder.data, hold.holder.data);
    if (!same) this.#view.onEvent({ type: 'changed', holder: stateOfHolder(hold) });
  }

  /** Takes the lock from a holder. The caller hands it over (W2). */
  vacate(hold: Hold, how: 'released' | 'expired' | 'forced'): void {
    this.#remove(hold);
    const { owner, version } = hold.holder;
    if (!hold.delayed) this.#loose.push(owner.session);
    this.#view.onEvent?.({ type: how, owner, version, permits: hold.permits });
    if (hold.keepData) this.keepData(hold.holder.data);
    this.#meterEnd(hold, how);
  }

  /** Gives a holder the lock in another way, by a new grant, as fencing versions are of one way to hold it. */
  convert(hold: Hold, { sinceMs, ...to }: Conversion): Hold {
    this.#remove(hold);
    const holder = { ...hold.holder, version: this.#view.revision, lockTimeMs: this.#view.wallMs };
    const attempt = Math.max(hold.attempt, to.upgradeAttempt);
    const converted: Hold = { ...hold, ...to, holder, attempt };
    this.#add(converted);
    this.#view.onEvent?.(conversionEvent(stateOfHolder(converted), sinceMs !== undefined));
    if (this.#head.revoking) this.#askOn(hold.holder.version);
    this.#meterEnd(hold, 'converted');
    this.#view.meter?.granted(converted.mode, this.#msSince(sinceMs));
    return converted;
  }

  #meterEnd({ mode, holder }: Hold, how: GrantEnd): void {
    this.#view.meter?.ended(mode, how, this.#view.wallMs - holder.lockTimeMs);
  }

  #msSince(sinceMs: number | undefined): number | undefined {
    return sinceMs === undefined ? undefined : this.#view.wallMs - sinceMs;
  }

  #add(hold: Hold): void {
    const head = this.#head;
    this.#changed = true;
    if (hold.mode === 'exclusive') {
      head.hold = hold;
      return;
    }
    const { owner, version } = hold.holder;
    head.sharers += 1;
    head.permits += hold.permits;
    this.#view.put(this.#keys.share(owner, version), encodeShare(hold));
    const { sequence, mark } = this.owner(owner);
    this.#putOwner(owner, { sequence, mark, shareVersion: version });
  }

  #remove(hold: Hold): void {
    const head = this.#head;
    const { owner, version } = hold.holder;
    // A second grant under one revision would repeat a fencing version.
    assert(version < this.#view.revision, 'a grant ends under a later revision than it began');
    this.#changed = true;
    if (hold.delayed) head.delayed -= 1;
    if (hold.mode === 'exclusive') {
      head.hold = undefined;
      return;
    }
    const record = this.owner(owner);
    head.sharers -= 1;
    head.permits -= hold.permits;
    this.#view.delete(this.#keys.share(owner, version));
    if (hold.delayed)
      this.#view.delete(this.#keys.owner(owner)); // W7
    else this.#putOwner(owner, { sequence: record.sequence, mark: record.mark, shareVersion: 0 });
  }

  #share(owner: Owner, version: number): Hold {
    const key = this.#keys.share(owner, version);
    const value = this.#view.get(key);
    assert(value !== undefined, 'W3: a share has a row');
    return shareAt(this.#keys, { key, value });
  }

  // ------------------------------------------------------------------------------------------------ kept data

  get keptData(): Bytes {
    return keptData(this.#view, this.#keys, this.#head);
  }

  /** No bytes: nothing is kept any more. */
  keepData(data: Bytes): void {
    const { onEvent } = this.#view;
    if (onEvent !== undefined && !equalBytes(this.keptData, data)) {
      onEvent({ type: 'kept', data: data.length > 0 ? data : undefined });
    }
    if (keepData(this.#view, this.#keys, { head: this.#head, data })) this.#changed = true;
  }

  /** Who has taken the lock by force; undefined: that is not on record any more. */
  recordForced(forced: ForcedRelease | undefined): void {
    if (forced === undefined && !this.#head.forcedOnRecord) return;
    this.#view.onEvent?.({ type: 'recorded', forced });
    if (recordForced(this.#view, this.#keys, { head: this.#head, forced })) this.#changed = true;
  }

  // ------------------------------------------------------------------------------------------------ revocation

  /** Undefined: nothing is asked any more. */
  setRevocation(revocation: Revocation | undefined): void {
    writeRevocation(this.#view, this.#keys, { head: this.#head, revocation });
    this.#changed = true;
    this.#view.onEvent?.({ type: 'revoking', revocation });
  }

  /** Whether anybody holds the lock by a grant up to this version, and can let go of it. */
  isAsked(version: number): boolean {
    const { hold, delayed } = this.#head;
    const holds = hold === undefined ? this.shares(delayed === 0 ? 1 : 0) : [hold];
    return holds.some((one) => !one.delayed && one.holder.version <= version);
  }

  /** V3 of `revocation.ts`: who has had the lock by `version`, and has it by a new one now, is asked as before. */
  #askOn(version: number): void {
    const revocation = readRevocation(this.#view, this.#keys, this.#head);
    if (revocation === undefined || version > revocation.version) return;
    this.setRevocation({ ...revocation, version: this.#view.revision });
  }

  /** V2 of `revocation.ts`. */
  #endRevocation(): void {
    const revocation = readRevocation(this.#view, this.#keys, this.#head);
    if (revocation === undefined) return;
    if (this.#view.timeMs > revocation.untilMs || !this.isAsked(revocation.version)) this.setRevocation(undefined);
  }

  // ------------------------------------------------------------------------------------------------ semaphore

  /** Makes the lock a semaphore, or changes how many permits it has. */
  setCapacity(capacity: number, isSet: boolean): void {
    if (capacity !== this.#head.capacity) this.#view.onEvent?.({ type: 'capacity', capacity });
    this.#head.capacity = capacity;
    this.#head.capacityIsSet = isSet;
    this.#changed = true;
  }

  // ------------------------------------------------------------------------------------------------ upgrade

  upgrader(): WaiterRecord | undefined {
    if (!this.#head.upgrading) return undefined;
    const bytes = this.#view.get(this.#keys.upgrade());
    assert(bytes !== undefined, 'W2: who waits for an upgrade has a row');
    return decodeWaiter(bytes);
  }

  setUpgrader(waiter: WaiterRecord): void {
    this.#view.put(this.#keys.upgrade(), encodeWaiter(waiter));
    if (!this.#head.upgrading) this.#tellQueued(waiter, 1);
    this.#head.upgrading = true;
    this.#changed = true;
  }

  removeUpgrader(): void {
    this.#view.delete(this.#keys.upgrade());
    this.#head.upgrading = false;
    this.#changed = true;
  }

  // ------------------------------------------------------------------------------------------------ queue

  /** What the owner has besides a hold for itself alone. */
  owner(owner: Owner): OwnerRecord {
    if (this.#hasNoOwners) return NOTHING_OWNED;
    const bytes = this.#view.get(this.#keys.owner(owner));
    return bytes === undefined ? NOTHING_OWNED : decodeOwner(bytes);
  }

  waiter(sequence: number): WaiterRecord {
    const bytes = this.#view.get(this.#keys.waiter(sequence));
    assert(bytes !== undefined, 'W3: a place in the queue has a row');
    return decodeWaiter(bytes);
  }

  /** Adds the owner at the end of the queue. */
  enqueue(waiter: WaiterRecord, record: OwnerRecord): void {
    const head = this.#head;
    const sequence = head.nextSequence;
    assert(Number.isSafeInteger(sequence), 'sequences of a queue are safe integers');
    this.#view.put(this.#keys.waiter(sequence), encodeWaiter(waiter));
    this.#putOwner(waiter.owner, { sequence, mark: record.mark, shareVersion: record.shareVersion });
    this.#view.attach(waiter.owner.session, this.#lock);
    head.nextSequence = sequence + 1;
    head.waiters += 1;
    this.#changed = true;
    this.#tellQueued(waiter, head.waiters + (head.upgrading ? 1 : 0));
  }

  #tellQueued({ owner, sinceMs, mode, permits }: WaiterRecord, position: number): void {
    this.#view.onEvent?.({ type: 'queued', waiter: { owner, position, sinceMs, mode, permits } });
    this.#view.meter?.queued(mode, position);
  }

  replaceWaiter(sequence: number, waiter: WaiterRecord): void {
    this.#view.put(this.#keys.waiter(sequence), encodeWaiter(waiter));
  }

  /** At most this many are before the waiter, itself included; exact unless some have left from the middle. */
  position(sequence: number): number {
    return positionOf(this.#head, sequence);
  }

  removeWaiter(owner: Owner, record: OwnerRecord): void {
    assert(record.sequence !== 0, 'only a waiter leaves the queue');
    this.#dropWaiter(record.sequence);
    this.#putOwner(owner, { sequence: 0, mark: record.mark, shareVersion: record.shareVersion });
  }

  /** The first waiters, one by one; the caller takes each out (`removeFirst`) before it asks for the next. */
  *front(): Generator<WaiterRecord> {
    let limit = 1;
    while (this.#head.waiters > 0) {
      const rows = this.#view.scan(this.#keys.waiter(this.#head.firstSequence), this.#keys.queueEnd(), limit);
      assert(rows.length > 0, 'W1: the head counts the rows of the queue');
      for (const row of rows) yield decodeWaiter(row.value);
      limit = Math.min(2 * limit, FRONT_BATCH_MAX);
    }
  }

  removeFirst({ owner }: WaiterRecord): void {
    const record = this.owner(owner);
    this.#head.firstSequence = record.sequence + 1;
    this.removeWaiter(owner, record);
  }

  // ------------------------------------------------------------------------------------------------ marks

  mark(owner: Owner, mark: Mark): void {
    this.#marks.leave(owner, mark);
    this.#view.attach(owner.session, this.#lock);
  }

  /** Clears some of the marks whose end has passed; costs nothing while none has. */
  clearEndedMarks(): void {
    if (this.#head.marks > 0 && this.#view.timeMs > this.#head.marksDueMs) this.#marks.clearEnded();
  }

  /** Those who wait without queueing, or have. */
  get passers(): Passers {
    return new Passers({
      ...{ view: this.#view, keys: this.#keys, head: this.#head },
      attach: (session) => this.#view.attach(session, this.#lock),
      loosen: (session) => this.#loose.push(session),
      changed: () => {
        this.#changed = true;
      },
    });
  }

  get #marks(): Marks {
    return new Marks({
      ...{ view: this.#view, keys: this.#keys, head: this.#head },
      owner: (owner) => this.owner(owner),
      putOwner: (owner, record) => this.#putOwner(owner, record),
      changed: () => {
        this.#changed = true;
      },
    });
  }

  // ------------------------------------------------------------------------------------------------ ends

  /**
   * Removes all that a session has in the lock but for holds that are delayed from now on.
   */
  removeSession(session: SessionRef): RemovedSession {
    const { hold } = this.#head;
    const waiters: Owner[] = [];
    const delayed: Hold[] = [];
    const passing = this.#removePassers(session);
    this.#view.detach(session, this.#lock);
    if (hold !== undefined && sameSession(hold.holder.owner.session, session)) this.#vacateOrDelay(hold, delayed);
    if (this.#hasNoOwners) return { waiters, passing, delayed };
    const upgrader = this.upgrader();
    if (upgrader !== undefined && sameSession(upgrader.owner.session, session)) {
      this.removeUpgrader();
      waiters.push(upgrader.owner);
    }
    const span = this.#keys.session(session);
    for (const row of this.#view.scan(span.start, span.end, 0)) {
      const owner = this.#keys.ownerOf(row.key);
      const { sequence, mark, shareVersion } = decodeOwner(row.value);
      if (sequence !== 0) {
        this.#dropWaiter(sequence);
        waiters.push(owner);
      }
      if (mark !== undefined) this.#marks.drop(owner, mark.deadlineMs);
      if (sequence !== 0 || mark !== undefined) this.#putOwner(owner, { sequence: 0, mark: undefined, shareVersion });
      if (shareVersion !== 0) this.#vacateOrDelay(this.#share(owner, shareVersion), delayed);
    }
    return { waiters, passing, delayed };
  }

  /** Gives those who waited. */
  #removePassers(session: SessionRef): readonly Owner[] {
    if (!this.#hasPassers) return [];
    const { passers } = this;
    const gone = passers.ofSession(session, 0);
    for (const { owner } of gone) passers.remove(owner);
    return gone.filter(({ passedVersion }) => passedVersion === 0).map(({ owner }) => owner);
  }

  /** Of a session that has ended. */
  #vacateOrDelay(hold: Hold, delayed: Hold[]): void {
    if (hold.delayed) return; // It has been told before.
    if (hold.delayMs === 0) return this.vacate(hold, 'expired');
    const later: Hold = { ...hold, delayed: true };
    this.setHold(later);
    this.#head.delayed += 1;
    delayed.push(later);
  }

  /** Writes the head, or removes it with the last record (K3), and detaches sessions that have nothing left (W4). */
  save(): void {
    const head = this.#head;
    assert(this.held || (head.waiters === 0 && head.passing === 0), 'W2: only a lock that is held has a queue');
    assert(head.sharers === 0 ? !head.upgrading : head.hold === undefined, 'W6: a lock is held alone or shared');
    if (head.waiters === 0) {
      head.firstSequence = 1;
      head.nextSequence = 1;
    }
    if (!this.held && !head.capacityIsSet && head.capacity > 0) this.setCapacity(0, false);
    if (head.revoking) this.#endRevocation();
    if (this.#changed) {
      const isLeft = head.marks > 0 || head.passed > 0 || head.capacity > 0 || head.keepsData || head.forcedOnRecord;
      if (this.held || isLeft) this.#view.put(this.#keys.head, encodeHead(head));
      else if (this.#existed) this.#view.delete(this.#keys.head);
    }
    for (const session of this.#loose) {
      if (!this.#sessionInUse(session)) this.#view.detach(session, this.#lock);
    }
  }

  get #hasPassers(): boolean {
    return this.#head.passing > 0 || this.#head.passed > 0;
  }

  /** W1. No owner has a row. */
  get #hasNoOwners(): boolean {
    const { waiters, marks, sharers } = this.#head;
    return waiters === 0 && marks === 0 && sharers === 0;
  }

  #sessionInUse(session: SessionRef): boolean {
    const { hold } = this.#head;
    if (hold !== undefined && !hold.delayed && sameSession(hold.holder.owner.session, session)) return true;
    if (this.#hasPassers && this.passers.ofSession(session, 1).length > 0) return true;
    if (this.#hasNoOwners) return false;
    const span = this.#keys.session(session);
    return this.#view.scan(span.start, span.end, 1).length > 0;
  }

  #dropWaiter(sequence: number): void {
    this.#view.delete(this.#keys.waiter(sequence));
    this.#head.waiters -= 1;
    this.#changed = true;
  }

  /** Writes an owner's row, or removes it when it says nothing (W3). */
  #putOwner(owner: Owner, record: OwnerRecord): void {
    const key = this.#keys.owner(owner);
    if (record.sequence !== 0 || record.mark !== undefined || record.shareVersion !== 0) {
      this.#view.put(key, encodeOwner(record));
      return;
    }
    this.#view.delete(key);
    this.#loose.push(owner.session);
  }
}

function conversionEvent(holder: HolderState, waited: boolean): LockEvent {
  return holder.mode === 'exclusive' ? { type: 'upgraded', holder, waited } : { type: 'downgraded', holder };
}
