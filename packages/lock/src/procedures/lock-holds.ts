/**
 * The holders of a lock: grants, their changes and their ends, and which of them are asked to release.
 *
 * W6. Either one owner holds the lock exclusively (the head names it), or any number share it (with a row each): never
 *     both. The head counts the permits of all that share a semaphore.
 * W7. An owner with a delayed hold has nothing else in the lock: its owner row, if it shares the lock, contains nothing
 *     more. Another session may have the id of its lease by now, and stays attached. The head counts the delayed holds.
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

/** What to grant, to which owner. */
export type GrantRequest = Pick<
  WaiterRecord,
  'owner' | 'mode' | 'permits' | 'attempt' | 'data' | 'keepData' | 'delayMs'
>;

export interface Conversion {
  readonly mode: 'exclusive' | 'shared';
  readonly upgradeAttempt: number;
  /** The wall time since when it has waited for this; absent: it has not. */
  readonly sinceMs?: number;
}

export class LockHolds extends LockRecords {
  /** The hold of an owner. A delayed hold no longer belongs to its owner. */
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

  /** One of the holders: of several sharers the first that is not `except`. */
  anyHold(except?: Owner): Hold | undefined {
    return (
      this.headRecord.hold ??
      this.shares(2).find(({ holder }) => except === undefined || !sameOwner(holder.owner, except))
    );
  }

  /** The shares, in the order of their grants, at most `limit` of them (0: all). */
  shares(limit: number): readonly Hold[] {
    if (this.headRecord.sharers === 0) return [];
    const { start, end } = this.keys.shares();
    return this.view.scan(start, end, limit).map((row) => shareAt(this.keys, row));
  }

  /** Whether there is no room, whatever an owner asks for. */
  get full(): boolean {
    const { hold, permits, capacity } = this.headRecord;
    return hold !== undefined || (capacity > 0 && permits >= capacity);
  }

  /** Whether there is room for this beside the present holders. */
  fits({ mode, permits }: Pick<GrantRequest, 'mode' | 'permits'>): boolean {
    const head = this.headRecord;
    if (mode === 'exclusive') return !this.held;
    if (head.hold !== undefined || head.sharers >= SHARERS_MAX) return false;
    return mode !== 'permits' || head.permits + permits <= head.capacity;
  }

  /** Makes the owner a holder, by the revision of this command. `sinceMs`: the wall time since when it has waited. */
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

  /** Changes the depth, the data or the numbers of a hold. */
  setHold(hold: Hold): void {
    this.#tellChange(hold);
    if (hold.mode === 'exclusive') this.headRecord.hold = hold;
    else this.view.put(this.keys.share(hold.holder.owner, hold.holder.version), encodeShare(hold));
    this.changed = true;
  }

  /** A change that no reader can see is not an event (E2). */
  #tellChange(hold: Hold): void {
    if (this.view.onEvent === undefined) return;
    const before = this.holdOf(hold.holder.owner);
    const same =
      before?.delayed === hold.delayed &&
      before.holder.depth === hold.holder.depth &&
      equalBytes(before.holder.data, hold.holder.data);
    if (!same) this.view.onEvent({ type: 'changed', holder: stateOfHolder(hold) });
  }

  /** Ends a hold. The caller hands over (W2). */
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

  /** Converts a hold to another mode, by a new grant: a fencing version stands for one mode. */
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

  /** Undefined: the revocation is over. */
  setRevocation(revocation: Revocation | undefined): void {
    writeRevocation(this.view, this.keys, { head: this.headRecord, revocation });
    this.changed = true;
    this.view.onEvent?.({ type: 'revoking', revocation });
  }

  /** Whether somebody who can release the lock holds it by a version up to this one. */
  isAsked(version: number): boolean {
    const { hold, delayed } = this.headRecord;
    const holds = hold === undefined ? this.shares(delayed === 0 ? 1 : 0) : [hold];
    return holds.some((one) => !one.delayed && one.holder.version <= version);
  }

  /** V3 of `revocation.ts`: a holder whose version has changed from `version` is still asked. */
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
