import type { Bytes } from '@remora/base';

/** Names one lock. Every record of a lock shares a key prefix, and thus a range. */
export interface LockId {
  /** Separates the users of one cluster: 1 to 255 bytes of UTF-8. Default `default`. */
  readonly namespace: string;
  /** 1 to 1,024 bytes of any value. */
  readonly name: Bytes;
}

/** Names a session, which is a lease. Both numbers are needed, as an id may be used again (design §9). */
export interface SessionRef {
  readonly lease: bigint;
  readonly incarnation: number;
}

/** The owner of a hold, or of a place in the queue: a token within a session. */
export interface Owner {
  readonly session: SessionRef;
  /**
   * A GUID that the client made for this handle (SharkLock's `lockBy`). 1 to 128 bytes of UTF-8. It is a secret: a
   * caller that knows it may release what the owner holds.
   */
  readonly token: string;
}

/** An owner as shown to other callers (PO1 of `public-owner.ts`). */
export interface PublicOwner {
  readonly session: SessionRef;
  /** A digest of the token, which tells the owners of one session apart. */
  readonly id: string;
}

/**
 * What an acquire asks for, if not for the lock exclusively.
 *  - `shared`: the lock together with other owners that share it.
 *  - `upgrade`: the owner holds the lock shared and wants it exclusively, without releasing it in between. Its depth
 *    does not change. The acquire is numbered.
 *  - `permits`: some permits of a semaphore. `capacity` is the number of permits in all; it applies when nobody uses
 *    the semaphore and its capacity was not set.
 *  - `pass`: only to wait until nobody holds the lock; a holder releases it first. The acquire is numbered, and
 *    answered by a grant of depth 0.
 *  - `enter`: the lock shared, and to wait until as many owners share it as there are parties. The acquire is numbered.
 */
export type AcquireAs =
  | { readonly type: 'shared' }
  | { readonly type: 'upgrade' }
  | { readonly type: 'permits'; readonly permits: number; readonly capacity: number }
  | { readonly type: 'pass' }
  | { readonly type: 'enter'; readonly parties: number };

/** Commands change a lock and go through the log. Times are range time in ms (see `LockView.timeMs`). */
export type LockCommand =
  | {
      readonly type: 'acquire';
      readonly lock: LockId;
      readonly owner: Owner;
      /** Join the queue when the lock is taken; otherwise answer `busy`. */
      readonly wait: boolean;
      /** Range time after which the waiter is no longer granted the lock; 0: it waits as long as its session lives. */
      readonly waitUntilMs: number;
      /** The deadline of the command, in range time. A mark of a later cancel or release lives until then. */
      readonly deadlineMs: number;
      /**
       * Numbers the acquires of one owner, from 1: a new acquire takes the next number, and a repeated one keeps its
       * number. Absent or 0: not numbered (M1 and M2 of `procedures.ts` say what that costs).
       */
      readonly attempt?: number;
      /** How deep the owner may re-enter; 1 turns re-entry off. */
      readonly depthMax: number;
      /** Bytes that are shown with the lock, at most 4 KiB. */
      readonly data: Bytes;
      /** Absent: the lock exclusively. */
      readonly as?: AcquireAs;
      /** The data stay with the lock when the hold ends, in whatever way (D1 of `procedures.ts`). */
      readonly keepData?: boolean;
      /**
       * The lock-delay: how long nobody else is granted the lock after the session of the owner has ended, 0 to
       * `LOCK_DELAY_MAX_MS` (T1 of `procedures.ts`). Absent: 0.
       */
      readonly delayMs?: number;
    }
  | {
      readonly type: 'release';
      readonly lock: LockId;
      readonly owner: Owner;
      /** Release all levels, and not just one. */
      readonly all: boolean;
      /**
       * The latest deadline of the owner's acquires that may still be in flight; 0 when there is none, so that no mark
       * is left.
       */
      readonly deadlineMs: number;
      /** The latest acquire that this ends. */
      readonly attempt?: number;
    }
  /**
   * Leaves the queue, or releases the lock if it was granted meanwhile. A mark stops an acquire that is still in
   * flight.
   */
  | {
      readonly type: 'cancel';
      readonly lock: LockId;
      readonly owner: Owner;
      /** The latest deadline of the owner's acquires that may still be in flight; the mark lives until then. */
      readonly deadlineMs: number;
      /** The acquire that this ends. */
      readonly attempt?: number;
    }
  /** Takes the lock from its holders. `by` and `reason` stay on record if either is given (F1 of `procedures.ts`). */
  | {
      readonly type: 'forceRelease';
      readonly lock: LockId;
      readonly by?: string;
      readonly reason?: string;
      /** Only grants up to this version end: those that the caller has seen. Absent or 0: all. */
      readonly upToVersion?: number;
    }
  /**
   * The holder keeps the lock, shared from now on and by a new version, and no longer waits for an upgrade. Repeating
   * it changes nothing.
   */
  | {
      readonly type: 'downgrade';
      readonly lock: LockId;
      readonly owner: Owner;
      /** The latest acquire or upgrade that this ends. */
      readonly attempt?: number;
    }
  /**
   * Sets how many permits a semaphore has from now on, also while nobody uses it. Holders keep their permits. 0 undoes
   * that: the next acquire of the unused semaphore says how many there are.
   */
  | { readonly type: 'setCapacity'; readonly lock: LockId; readonly capacity: number }
  /** Changes the data of a hold. */
  | {
      readonly type: 'setData';
      readonly lock: LockId;
      readonly owner: Owner;
      /** The version of the grant that it is about; the data of another grant stay unchanged. */
      readonly version: number;
      readonly data: Bytes;
    }
  /**
   * How many levels the holder has entered, for clients that count them themselves. It names the total and not a step,
   * so it can be repeated. At least 1, because a release ends the last level.
   */
  | {
      readonly type: 'setDepth';
      readonly lock: LockId;
      readonly owner: Owner;
      /** The version of the grant. */
      readonly version: number;
      readonly depth: number;
    }
  /** Deletes the kept data of the lock and the record of a forced release. */
  | { readonly type: 'forget'; readonly lock: LockId }
  /** Asks all holders to release the lock within `forMs`, 1 to `REVOKE_MAX_MS` (V1 of `revocation.ts`). */
  | {
      readonly type: 'revoke';
      readonly lock: LockId;
      /** Who asks, and why, for people: at most 128 and 256 bytes of UTF-8. */
      readonly by: string;
      readonly reason: string;
      readonly forMs: number;
    }
  /** Ends a delayed hold. Only the leader of the lock's range sends it, once the delay has passed. */
  | { readonly type: 'endDelay'; readonly lock: LockId; readonly owner: Owner; readonly version: number };

/** Queries read a lock and go through ReadIndex. */
export type LockQuery =
  | {
      readonly type: 'show';
      readonly lock: LockId;
      /**
       * The caller knows all kinds of locks. Otherwise all are shown as exclusive ones, as before there were others.
       */
      readonly allKinds?: true;
    }
  | {
      readonly type: 'list';
      readonly namespace: string;
      readonly prefix: Bytes;
      /** Names strictly after this one; empty begins at the first. */
      readonly after: Bytes;
      /** 1 to 1,000. */
      readonly limit: number;
      /** As in `show`. */
      readonly allKinds?: true;
    }
  | { readonly type: 'check'; readonly checks: readonly { readonly lock: LockId; readonly version: number }[] }
  /** A list of the locks that a person looks for. One query looks at `SEARCH_LOOKS_MAX` locks at most. */
  | {
      readonly type: 'search';
      readonly namespace: string;
      readonly prefix: Bytes;
      /** As in `list`. */
      readonly after: Bytes;
      readonly limit: number;
      /** Part of the name; empty: any name. */
      readonly contains: Bytes;
      /** Absent: any kind. */
      readonly kind?: SearchedKind | undefined;
    }
  /** The namespaces that have records of locks, in the order of the keys of these. */
  | {
      readonly type: 'namespaces';
      /** Namespaces after this one; empty begins at the first. */
      readonly after: string;
      /** 1 to 1,000. */
      readonly limit: number;
    };

/** `barrier`: a lock at which callers wait until nobody holds it, however it is held. */
export type SearchedKind = LockState['kind'] | 'barrier';

/** One grant. `version` is the fencing version: the revision of the command that granted. */
export interface Holder {
  readonly owner: PublicOwner;
  readonly version: number;
  readonly depth: number;
  /** The wall time of the leader at the grant, in ms since 1970; for display only. */
  readonly lockTimeMs: number;
  readonly data: Bytes;
}

/** How a holder holds a lock: exclusively, shared with other readers, or with some permits of a semaphore. */
export type HoldMode = 'exclusive' | 'shared' | 'permits';

export interface HolderState extends Holder {
  readonly mode: HoldMode;
  /** How many permits it holds; 0 unless the lock is a semaphore. */
  readonly permits: number;
  /** Its data stay with the lock when the hold ends. */
  readonly keepsData: boolean;
  /** Its lock-delay, in ms: how long it blocks others after its session has ended. */
  readonly delayMs: number;
  /** Its session has ended, and the lock-delay has not passed. */
  readonly delayed: boolean;
}

export interface Waiter {
  readonly owner: PublicOwner;
  /** 1 is next. */
  readonly position: number;
  /** The wall time of the leader when the waiter joined, in ms since 1970; for display only. */
  readonly sinceMs: number;
  /** `upgrade`: it holds the lock shared, and waits to hold it exclusively. */
  readonly mode: HoldMode | 'upgrade';
  readonly permits: number;
}

/** A hold of a session, or its place in a queue. */
export interface SessionLock {
  readonly lock: LockId;
  /** As in `PublicOwner`. */
  readonly ownerId: string;
  readonly mode: Waiter['mode'];
  readonly permits: number;
  /** The version and the depth of the hold; 0 while it waits. */
  readonly version: number;
  readonly depth: number;
  /** The position in the queue, 1 is next; 0 for a hold. */
  readonly position: number;
  /**
   * The wall time of the leader at the grant, or when it joined the queue, in ms since 1970; for display only. 0: it is
   * not known.
   */
  readonly sinceMs: number;
}

export interface LockState {
  readonly lock: LockId;
  /** How it is held: exclusively, shared, or as a semaphore. */
  readonly kind: 'exclusive' | 'shared' | 'semaphore';
  /** In the order of their grants: at most 1,000 in `show` and 10 in `list`. */
  readonly holders: readonly HolderState[];
  /** The number of holders. */
  readonly holderCount: number;
  /** The first waiters, in order: at most 1,000 in `show` and 10 in `list`. Waiters whose wait is over are left out. */
  readonly waiters: readonly Waiter[];
  /** The number of waiters, including those whose wait is over until a hand-over removes them. */
  readonly waiterCount: number;
  /** How many permits of a semaphore are held; 0 for a lock. */
  readonly permits: number;
  /** How many permits a semaphore has in all; 0 for a lock. */
  readonly capacity: number;
  /** The data that a holder left with the lock; undefined when there are none. */
  readonly keptData: Bytes | undefined;
  /** How many owners wait at the lock as a barrier, without queueing for it. */
  readonly passing: number;
  /** The last forced release, if it is on record. */
  readonly forced: ForcedRelease | undefined;
  /** The revocation in force; absent when there is none. */
  readonly revocation?: Revocation | undefined;
}

/** The record of a forced release. */
export interface ForcedRelease {
  /** The wall time of the leader, in ms since 1970; for display only. */
  readonly atMs: number;
  /** Who did it, as they said; empty if not given. */
  readonly by: string;
  readonly reason: string;
  /** The version of the newest grant that it ended. */
  readonly version: number;
}

/** A request to the holders of a lock to release it. */
export interface Revocation {
  /** The revision of the command, which identifies the request. */
  readonly revision: number;
  /** The request addresses the grants up to this version. */
  readonly version: number;
  readonly by: string;
  readonly reason: string;
  /** The range time after which the request is void. */
  readonly untilMs: number;
  /** The wall time of the leader at the request, in ms since 1970; for display only. */
  readonly sinceMs: number;
}

export type LockResult =
  | {
      readonly type: 'granted';
      readonly version: number;
      readonly depth: number;
      readonly lockTimeMs: number;
      /** The data that an earlier holder left with the lock; absent when there are none. */
      readonly keptData?: Bytes;
    }
  /** `position` is exact when the owner joins, and an upper bound later, as waiters may have left from the middle. */
  | { readonly type: 'queued'; readonly position: number }
  | { readonly type: 'busy'; readonly holder: Holder }
  /** `depth`: levels still held. `version`: of the grant that was released. */
  | { readonly type: 'released'; readonly depth: number; readonly version: number }
  /** Answers `setCapacity`. */
  | { readonly type: 'capacity'; readonly permits: number; readonly capacity: number }
  /** Answers `revoke`: the request addresses the grants up to this version. */
  | { readonly type: 'revoking'; readonly version: number }
  /** Answers `forget`: whether there was anything to delete. */
  | { readonly type: 'forgotten'; readonly any: boolean }
  /** `released`: a grant, a level of it or an upgrade was undone. */
  | { readonly type: 'canceled'; readonly released: boolean }
  /** The command was refused, or a waiter left the queue without a grant: `code` says why. */
  | {
      readonly type: 'refused';
      readonly code:
        | 'SESSION_EXPIRED'
        | 'LOCK_NOT_HELD'
        | 'LOCK_WRONG_OWNER'
        | 'LOCK_CANCELED'
        | 'LOCK_TIMEOUT'
        | 'LOCK_DEPTH_EXCEEDED'
        | 'INVALID_ARGUMENT'
        | 'RESOURCE_EXHAUSTED'
        | 'LOCK_KIND_MISMATCH'
        | 'LOCK_UPGRADE_CONFLICT'
        | 'LOCK_PERMITS_EXCEEDED';
      readonly message: string;
    };

export type RefusalCode = Extract<LockResult, { readonly type: 'refused' }>['code'];

export type LockQueryResult =
  | { readonly type: 'show'; readonly state: LockState | undefined }
  | {
      readonly type: 'list';
      readonly locks: readonly LockState[];
      /** More may follow after the last one. */
      readonly more: boolean;
    }
  | { readonly type: 'check'; readonly current: readonly boolean[] }
  | {
      readonly type: 'search';
      readonly locks: readonly LockState[];
      /** The last name that was looked at, if more may follow after it. */
      readonly next: Bytes | undefined;
    }
  | {
      readonly type: 'namespaces';
      readonly namespaces: readonly string[];
      /** More may follow after the last one. */
      readonly more: boolean;
    };

/** The answer to an open call of another owner, which the command caused. */
export interface LockNotice {
  readonly lock: LockId;
  readonly owner: Owner;
  readonly result: LockResult;
}

/** A hold whose session has ended and that blocks others for `delayMs` from now on, by the clock of its leader. */
export interface DelayedHold {
  readonly lock: LockId;
  readonly owner: Owner;
  readonly version: number;
  readonly delayMs: number;
}

/** The effects of the end of a session on a lock. */
export interface SessionEnd {
  readonly notices: readonly LockNotice[];
  readonly delayed: readonly DelayedHold[];
}

export interface LockOutcome {
  readonly result: LockResult;
  readonly notices: readonly LockNotice[];
}
