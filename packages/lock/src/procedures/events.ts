/**
 * The events of a lock, for its watchers, and how they change its state.
 *
 * E1. Applied in order to the state of a lock, its events result in its state after them, as `show` returns it. Only
 *     the number is known of owners that a state does not name.
 * E2. Every change that `show` can return is an event, and nothing else is: an owner that repeats a request causes
 *     none.
 */
import { unreachable } from '@remora/base';
import { samePublicOwner } from '../identity.ts';
import type {
  ForcedRelease,
  HolderState,
  LockId,
  LockState,
  PublicOwner,
  RefusalCode,
  Revocation,
  Waiter,
} from '../types.ts';

/** The end of a grant. */
interface Ended {
  readonly owner: PublicOwner;
  readonly version: number;
  /** The permits that were given back; 0 unless the lock is a semaphore. */
  readonly permits: number;
}

export type LockEvent =
  /** Granted. `waited`: it was in the queue, and no longer is. */
  | { readonly type: 'acquired'; readonly holder: HolderState; readonly waited: boolean }
  /** Held exclusively from now on, by a new version. `waited`: the upgrade was waiting, and no longer is. */
  | { readonly type: 'upgraded'; readonly holder: HolderState; readonly waited: boolean }
  /** Held shared from now on, by a new version. */
  | { readonly type: 'downgraded'; readonly holder: HolderState }
  /** The holder has another depth or other data, or is delayed because its session has ended. */
  | { readonly type: 'changed'; readonly holder: HolderState }
  /** Released by its holder. */
  | ({ readonly type: 'released' } & Ended)
  /** The session of its holder has ended, and so has the lock-delay, if there was one. */
  | ({ readonly type: 'expired' } & Ended)
  /** Taken from its holder by force. */
  | ({ readonly type: 'forced' } & Ended)
  /** Joined the queue. */
  | { readonly type: 'queued'; readonly waiter: Waiter }
  /** Left the queue without a grant; `code` says why. */
  | { readonly type: 'left'; readonly owner: PublicOwner; readonly code: RefusalCode }
  /** The semaphore has this many permits from now on; 0: it is no longer a semaphore. */
  | { readonly type: 'capacity'; readonly capacity: number }
  /** The holders are asked to release the lock; undefined: that request is over. */
  | { readonly type: 'revoking'; readonly revocation: Revocation | undefined }
  /** These data are kept with the lock from now on; undefined: none. */
  | { readonly type: 'kept'; readonly data: Uint8Array | undefined }
  /** This forced release is on record from now on; undefined: none. */
  | { readonly type: 'recorded'; readonly forced: ForcedRelease | undefined }
  /** This many owners wait at the lock as a barrier, without queueing for it. */
  | { readonly type: 'passing'; readonly count: number };

/** One message to a watcher. */
export type LockNews =
  /**
   * Reports about locks from this name up to, but without, that one may be out of date: their states follow. Empty: no
   * bound.
   */
  | { readonly type: 'begin'; readonly from: Uint8Array; readonly to: Uint8Array }
  /**
   * The state of a lock; undefined when nobody holds it or waits for it. In a watch of several, locks without a message
   * are free.
   */
  | { readonly type: 'state'; readonly lock: LockId; readonly revision: number; readonly state: LockState | undefined }
  /** All states were reported; changes follow. */
  | { readonly type: 'live' }
  /** What one command, or the end of a session, has changed, in order. */
  | {
      readonly type: 'events';
      readonly lock: LockId;
      readonly revision: number;
      readonly events: readonly LockEvent[];
    };

/** E1. The state of a lock after an event; undefined when nobody holds it or waits for it. */
export function stateAfter(lock: LockId, before: LockState | undefined, event: LockEvent): LockState | undefined {
  const state = changed(before ?? freeLock(lock), event);
  const { holders, holderCount, waiterCount, capacity, keptData, forced } = state;
  const isUsed = holderCount > 0 || waiterCount > 0 || capacity > 0;
  if (!isUsed && keptData === undefined && forced === undefined) return undefined;
  const isShared = holderCount > 0 && holders[0]?.mode !== 'exclusive';
  const kind = capacity > 0 ? 'semaphore' : isShared ? 'shared' : 'exclusive';
  return { ...state, kind };
}

function freeLock(lock: LockId): LockState {
  return {
    ...{ lock, kind: 'exclusive', holders: [], holderCount: 0 },
    ...{ waiters: [], waiterCount: 0, permits: 0, capacity: 0, keptData: undefined, forced: undefined, passing: 0 },
  };
}

function changed(state: LockState, event: LockEvent): LockState {
  switch (event.type) {
    case 'acquired':
      return withHolder(event.waited ? withoutWaiter(state, event.holder.owner) : state, event.holder);
    case 'upgraded': {
      const { holder, waited } = event;
      return withHolder(withoutHolder(waited ? withoutWaiter(state, holder.owner) : state, holder.owner, 0), holder);
    }
    case 'downgraded':
      return withHolder(withoutHolder(state, event.holder.owner, 0), event.holder);
    case 'changed': {
      const { holder } = event;
      return {
        ...state,
        holders: state.holders.map((one) => (samePublicOwner(one.owner, holder.owner) ? holder : one)),
      };
    }
    case 'released':
    case 'expired':
    case 'forced':
      return withoutHolder(state, event.owner, event.permits);
    case 'queued':
      return withWaiter(state, event.waiter);
    case 'left':
      return withoutWaiter(state, event.owner);
    case 'capacity':
      return { ...state, capacity: event.capacity };
    case 'revoking':
      return { ...state, revocation: event.revocation };
    case 'kept':
      return { ...state, keptData: event.data };
    case 'recorded':
      return { ...state, forced: event.forced };
    case 'passing':
      return { ...state, passing: event.count };
    default:
      return unreachable(event);
  }
}

/** A holder that comes behind unnamed ones is not named either. */
function withHolder(state: LockState, holder: HolderState): LockState {
  const { holders, holderCount, permits } = state;
  const all = holders.length === holderCount;
  return {
    ...state,
    holders: all ? [...holders, holder].sort(byGrant) : holders,
    holderCount: holderCount + 1,
    permits: permits + holder.permits,
  };
}

/** By version, and by owner within one version: the order in which states name holders. */
export function byGrant(a: HolderState, b: HolderState): number {
  if (a.version !== b.version) return a.version - b.version;
  const { session: one } = a.owner;
  const { session: other } = b.owner;
  if (one.lease !== other.lease) return one.lease < other.lease ? -1 : 1;
  if (one.incarnation !== other.incarnation) return one.incarnation - other.incarnation;
  return a.owner.id < b.owner.id ? -1 : Number(a.owner.id > b.owner.id);
}

function withoutHolder(state: LockState, owner: PublicOwner, permits: number): LockState {
  return {
    ...state,
    holders: state.holders.filter((holder) => !samePublicOwner(holder.owner, owner)),
    holderCount: state.holderCount - 1,
    permits: state.permits - permits,
  };
}

/** A waiting upgrade comes first. */
function withWaiter(state: LockState, waiter: Waiter): LockState {
  const { waiters, waiterCount } = state;
  const first = waiter.mode === 'upgrade';
  const all = waiters.length === waiterCount;
  const queue = first ? [waiter, ...waiters] : all ? [...waiters, waiter] : waiters;
  return { ...state, waiters: placed(queue), waiterCount: waiterCount + 1 };
}

function withoutWaiter(state: LockState, owner: PublicOwner): LockState {
  const waiters = placed(state.waiters.filter((waiter) => !samePublicOwner(waiter.owner, owner)));
  return { ...state, waiters, waiterCount: state.waiterCount - 1 };
}

function placed(waiters: readonly Waiter[]): readonly Waiter[] {
  return waiters.map((waiter, i) => ({ ...waiter, position: i + 1 }));
}
