/**
 * What happens to a lock, for those who listen, and what its state is after that.
 *
 * E1. The events of a lock, applied in order to its state before them, give its state after them: what `show` says. Of
 *     owners beyond those that a state names only the numbers are known.
 * E2. Every change that `show` can tell is an event, and nothing else is: an owner that asks again says nothing new.
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

/** An owner that holds the lock no longer. */
interface Ended {
  readonly owner: PublicOwner;
  readonly version: number;
  /** Of a semaphore: the permits that came back. */
  readonly permits: number;
}

export type LockEvent =
  /** `waited`: it was in the queue, and is not any more. */
  | { readonly type: 'acquired'; readonly holder: HolderState; readonly waited: boolean }
  /** Has it alone from now on, under a new version. `waited`: its upgrade waited, and does not any more. */
  | { readonly type: 'upgraded'; readonly holder: HolderState; readonly waited: boolean }
  /** Has it shared from now on, under a new version. */
  | { readonly type: 'downgraded'; readonly holder: HolderState }
  /** Holds it as before, at another depth or with other data; or is delayed, as its session has ended. */
  | { readonly type: 'changed'; readonly holder: HolderState }
  /** Given back by its holder. */
  | ({ readonly type: 'released' } & Ended)
  /** Its holder's session has ended, and the lock-delay is over, if it had one. */
  | ({ readonly type: 'expired' } & Ended)
  /** Taken from its holder by force. */
  | ({ readonly type: 'forced' } & Ended)
  | { readonly type: 'queued'; readonly waiter: Waiter }
  /** Waits no longer, and was not granted what it waited for; `code` says why. */
  | { readonly type: 'left'; readonly owner: PublicOwner; readonly code: RefusalCode }
  /** How many permits there are from now on; 0: it is no semaphore any more. */
  | { readonly type: 'capacity'; readonly capacity: number }
  /** Those who hold it are asked to let go; undefined: that is over. */
  | { readonly type: 'revoking'; readonly revocation: Revocation | undefined }
  /** Which data are kept with the lock from now on; undefined: none. */
  | { readonly type: 'kept'; readonly data: Uint8Array | undefined }
  /** Who has taken it by force last, as it is on record from now on; undefined: nothing is. */
  | { readonly type: 'recorded'; readonly forced: ForcedRelease | undefined }
  /** How many wait until it is free, or until enough share it. */
  | { readonly type: 'passing'; readonly count: number };

/** What a listener is told. */
export type LockNews =
  /** What was said of locks from this name on, up to before that one, may be out of date: their states follow. Empty: no bound. */
  | { readonly type: 'begin'; readonly from: Uint8Array; readonly to: Uint8Array }
  /** How a lock is now; undefined when nobody holds it or waits for it. Of several, those of which nothing is said are so. */
  | { readonly type: 'state'; readonly lock: LockId; readonly revision: number; readonly state: LockState | undefined }
  /** All states were told; from now on, what happens. */
  | { readonly type: 'live' }
  /** What one command, or the end of a session, has done to a lock, in order. */
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

/** Whoever comes behind some that are not named is not named either. */
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

/** By grant, and those of one command by owner: the order in which states name them. */
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

/** One who upgrades comes before all. */
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
