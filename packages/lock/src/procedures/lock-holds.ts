/**
 * Who holds a lock: grants, their changes and their ends, and who of them is asked to let go.
 *
 * W6. One owner has the lock alone (the head says who), or any number share it (a row for each): never both. Of a
 *     semaphore the permits of all who share it are counted in the head.
 * W7. A hold that is delayed is all that its owner has: an owner row, if it shares the lock, says nothing else. Its lease's
 *     id may be another session's by now, and stays attached as it is. The head counts those that are.
 */
import { assert, equalBytes } from '@remora/base';
import { sameOwner } from '../identity.ts';
import { SHARERS_MAX } from '../limits.ts';
import { publicOwner, stateOfHolder } from '../public-owner.ts';
import { LockRecords } from '../records/lock-records.ts';
import type { Hold } from '../records/records.ts';
import { readRevocation, writeRevocation } from '../records/revocation-row.ts';
import { encodeShare, shareAt, type WaiterRecord } from '../records/row-records.ts';
import type { HolderState, Owner, Revocation } from '../types.ts';
import type { LockEvent } from './events.ts';
import type { GrantEnd } from './meter.ts';

/** What is granted, to whom. */
export type GrantRequest = Pick<
  WaiterRecord,
  'owner' | 'mode' | 'permits' | 'attempt' | 'data' | 'keepData' | 'delayMs'
>;

export interface Conversion {
  readonly mode: 'exclusive' | 'shared';
  readonly upgradeAttempt: number;
  /** Since when it was waiting for this, in wall time; absent: it was not. */
  readonly sinceMs?: number;
}

export class LockHolds extends LockRecords {
  /** What the owner holds; a hold that is delayed is its no longer. */
  holdOf(owner: Owner): Hold | undefined {
    const hold = this.#anyHoldOf(owner);
    return hold?.delayed ? undefined : hold;
  }

  delayedHold(owner: Owner, version: number): Hold | undefined {
    const hold = this.headRecord.delayed === 0 ? undefined : this.#anyHoldOf(owner);
    return hold?.delayed && hold.holder.version === version ? hold : undefined;
  }

  #anyHoldOf(owner: Owner): Hold | undefined {
    const { hold } = this.headRecord;
    if (hold !== undefined) return sameOwner(hold.holder.owner, owner) ? hold : undefined;
    const { shareVersion } = this.owner(owner);
    return shareVersion === 0 ? undefined : this.share(owner, shareVersion);
  }

  /** One of those who hold it; of those who share it the first, or one that is not `except`. */
  anyHold(except?: Owner): Hold | undefined {
    return (
      this.headRecord.hold ??
      this.shares(2).find(({ holder }) => except === undefined || !sameOwner(holder.owner, except))
    );
  }

  /** Those who share it, in the order of their grants, at most `limit` of them (0: all). */
  shares(limit: number): readonly Hold[] {
    if (this.headRecord.sharers === 0) return [];
    const { start, end } = this.keys.shares();
    return this.view.scan(start, end, limit).map((row) => shareAt(this.keys, row));
  }

  /** Whether there is no room for anybody, whatever is asked for. */
  get full(): boolean {
    const { hold, permits, capacity } = this.headRecord;
    return hold !== undefined || (capacity > 0 && permits >= capacity);
  }

  /** Whether there is room beside those who hold it. */
  fits({ mode, permits }: Pick<GrantRequest, 'mode' | 'permits'>): boolean {
    const head = this.headRecord;
    if (mode === 'exclusive') return !this.held;
    if (head.hold !== undefined || head.sharers >= SHARERS_MAX) return false;
    return mode !== 'permits' || head.permits + permits <= head.capacity;
  }

  /** Makes the owner a holder, under the revision of this command. `sinceMs`: the wall time since when it waited. */
  grant(request: GrantRequest, sinceMs?: number): Hold {
    const { owner, mode, permits, attempt, keepData, delayMs } = request;
    assert(mode !== 'upgrade' && this.fits(request), 'W6: a lock is granted only where there is room');
    const data = keepData && request.data.length === 0 ? this.keptData : request.data; // D1
    const holder = { owner, version: this.view.revision, depth: 1, lockTimeMs: this.view.wallMs, data };
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
    this.attach(owner.session);
    this.#add(hold);
    this.view.onEvent?.({ type: 'acquired', holder: stateOfHolder(hold), waited: sinceMs !== undefined });
    this.view.meter?.granted(hold.mode, this.#msSince(sinceMs));
    return hold;
  }

  /** Changes what is known of a hold: its depth and its numbers. */
  setHold(hold: Hold): void {
    this.#tellChange(hold);
    if (hold.mode === 'exclusive') this.headRecord.hold = hold;
    else this.view.put(this.keys.share(hold.holder.owner, hold.holder.version), encodeShare(hold));
    this.changed = true;
  }

  /** What cannot be seen of a hold is no event (E2). */
  #tellChange(hold: Hold): void {
    if (this.view.onEvent === undefined) return;
    const before = this.holdOf(hold.holder.owner);
    const same =
      before?.delayed === hold.delayed &&
      before.holder.depth === hold.holder.depth &&
      equalBytes(before.holder.data, hold.holder.data);
    if (!same) this.view.onEvent({ type: 'changed', holder: stateOfHolder(hold) });
  }

  /** Takes the lock from a holder. The caller hands it over (W2). */
  vacate(hold: Hold, how: 'released' | 'expired' | 'forced'): void {
    this.#remove(hold);
    const { owner, version } = hold.holder;
    if (!hold.delayed) {
      this.loosen(owner.session);
      this.view.grantEnded?.(version);
    }
    this.view.onEvent?.({ type: how, owner: publicOwner(owner), version, permits: hold.permits });
    if (hold.keepData) this.keepData(hold.holder.data);
    this.#meterEnd(hold, how);
  }

  /** Gives a holder the lock in another way, by a new grant, as fencing versions are of one way to hold it. */
  convert(hold: Hold, { sinceMs, ...to }: Conversion): Hold {
    this.#remove(hold);
    const holder = { ...hold.holder, version: this.view.revision, lockTimeMs: this.view.wallMs };
    const attempt = Math.max(hold.attempt, to.upgradeAttempt);
    const converted: Hold = { ...hold, ...to, holder, attempt };
    this.#add(converted);
    this.view.grantEnded?.(hold.holder.version);
    this.view.onEvent?.(conversionEvent(stateOfHolder(converted), sinceMs !== undefined));
    if (this.headRecord.revoking) this.#askOn(hold.holder.version);
    this.#meterEnd(hold, 'converted');
    this.view.meter?.granted(converted.mode, this.#msSince(sinceMs));
    return converted;
  }

  #meterEnd({ mode, holder }: Hold, how: GrantEnd): void {
    this.view.meter?.ended(mode, how, this.view.wallMs - holder.lockTimeMs);
  }

  #msSince(sinceMs: number | undefined): number | undefined {
    return sinceMs === undefined ? undefined : this.view.wallMs - sinceMs;
  }

  #add(hold: Hold): void {
    const head = this.headRecord;
    this.changed = true;
    if (hold.mode === 'exclusive') {
      head.hold = hold;
      return;
    }
    const { owner, version } = hold.holder;
    head.sharers += 1;
    head.permits += hold.permits;
    this.view.put(this.keys.share(owner, version), encodeShare(hold));
    const { sequence, mark } = this.owner(owner);
    this.putOwner(owner, { sequence, mark, shareVersion: version });
  }

  #remove(hold: Hold): void {
    const head = this.headRecord;
    const { owner, version } = hold.holder;
    // A second grant under one revision would repeat a fencing version.
    assert(version < this.view.revision, 'a grant ends under a later revision than it began');
    this.changed = true;
    if (hold.delayed) head.delayed -= 1;
    if (hold.mode === 'exclusive') {
      head.hold = undefined;
      return;
    }
    const record = this.owner(owner);
    head.sharers -= 1;
    head.permits -= hold.permits;
    this.view.delete(this.keys.share(owner, version));
    if (hold.delayed)
      this.view.delete(this.keys.owner(owner)); // W7
    else this.putOwner(owner, { sequence: record.sequence, mark: record.mark, shareVersion: 0 });
  }

  protected share(owner: Owner, version: number): Hold {
    const key = this.keys.share(owner, version);
    const value = this.view.get(key);
    assert(value !== undefined, 'W3: a share has a row');
    return shareAt(this.keys, { key, value });
  }

  // ------------------------------------------------------------------------------------------------ semaphore

  /** Makes the lock a semaphore, or changes how many permits it has. */
  setCapacity(capacity: number, isSet: boolean): void {
    if (capacity !== this.headRecord.capacity) this.view.onEvent?.({ type: 'capacity', capacity });
    this.headRecord.capacity = capacity;
    this.headRecord.capacityIsSet = isSet;
    this.changed = true;
  }

  // ------------------------------------------------------------------------------------------------ revocation

  /** Undefined: nothing is asked any more. */
  setRevocation(revocation: Revocation | undefined): void {
    writeRevocation(this.view, this.keys, { head: this.headRecord, revocation });
    this.changed = true;
    this.view.onEvent?.({ type: 'revoking', revocation });
  }

  /** Whether anybody holds the lock by a grant up to this version, and can let go of it. */
  isAsked(version: number): boolean {
    const { hold, delayed } = this.headRecord;
    const holds = hold === undefined ? this.shares(delayed === 0 ? 1 : 0) : [hold];
    return holds.some((one) => !one.delayed && one.holder.version <= version);
  }

  /** V3 of `revocation.ts`: who has had the lock by `version`, and has it by a new one now, is asked as before. */
  #askOn(version: number): void {
    const revocation = readRevocation(this.view, this.keys, this.headRecord);
    if (revocation === undefined || version > revocation.version) return;
    this.setRevocation({ ...revocation, version: this.view.revision });
  }

  /** V2 of `revocation.ts`. */
  protected endRevocation(): void {
    const revocation = readRevocation(this.view, this.keys, this.headRecord);
    if (revocation === undefined) return;
    if (this.view.timeMs > revocation.untilMs || !this.isAsked(revocation.version)) this.setRevocation(undefined);
  }
}

function conversionEvent(holder: HolderState, waited: boolean): LockEvent {
  return holder.mode === 'exclusive' ? { type: 'upgraded', holder, waited } : { type: 'downgraded', holder };
}
