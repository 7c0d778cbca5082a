import type { Bytes } from '@remora/base';

/** Names one lock. Every record of a lock shares a key prefix, and thus a range. */
export interface LockId {
  /** Text that separates users of one cluster; `default` unless said otherwise. At most 255 bytes of UTF-8. */
  readonly namespace: string;
  /** Any bytes, 1 to 1,024 of them. */
  readonly name: Bytes;
}

/** A session is a lease; both numbers name it, as an id may be used again (design §9). */
export interface SessionRef {
  readonly lease: bigint;
  readonly incarnation: number;
}

/** Who acquires: a handle's token, unique per handle, within a session. */
export interface Owner {
  readonly session: SessionRef;
  /**
   * A GUID that the client made for this handle (SharkLock's `lockBy`). 1 to 128 bytes of UTF-8. It is a secret: whoever
   * names it may release what the owner holds.
   */
  readonly token: string;
}

/** An owner as it is shown to others (PO1 of `public-owner.ts`). */
export interface PublicOwner {
  readonly session: SessionRef;
  /** Tells the owners of one session apart: a digest of the token. */
  readonly id: string;
}

/**
 * What an acquire asks for where that is not the lock for its owner alone.
 *  - `shared`: together with others who ask for the same.
 *  - `upgrade`: the owner holds it shared and wants it alone, without letting go in between; depth stays as it is. Such
 *    an acquire is numbered.
 *  - `permits`: some of a semaphore's permits. `capacity` is how many there are in all when nobody uses it yet and
 *    nobody has set them; otherwise what is known of the semaphore counts.
 *  - `pass`: nothing, but to wait until nobody holds the lock; a holder gives back what it has first. Numbered. The answer
 *    is a grant of depth 0.
 *  - `enter`: shared, and to wait until as many share it as there are parties. Numbered.
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
      /** Range time after which the waiter is passed over; 0 waits as long as the session lives. */
      readonly waitUntilMs: number;
      /** The command's own deadline: until then a mark left by cancel or release refuses it. */
      readonly deadlineMs: number;
      /**
       * Numbers the acquires of one owner, from 1: a new acquire takes the next number, asking again about an acquire
       * repeats its number. Absent or 0: not numbered (see `procedures.ts`, M1 and M2, for what that costs).
       */
      readonly attempt?: number;
      /** How deep the owner may re-enter; 1 turns re-entry off. */
      readonly depthMax: number;
      /** Free bytes shown with the lock, at most 4 KiB. */
      readonly data: Bytes;
      /** Absent: the lock for the owner alone. */
      readonly as?: AcquireAs;
      /** What the holder says stays with the lock when its hold ends, in whatever way (D1 of `procedures.ts`). */
      readonly keepData?: boolean;
      /**
       * For how long nobody else is granted what the owner has once its session has ended, 0 (absent: 0) to
       * `LOCK_DELAY_MAX_MS`; a release ends it at once (T1 of `procedures.ts`).
       */
      readonly delayMs?: number;
    }
  | {
      readonly type: 'release';
      readonly lock: LockId;
      readonly owner: Owner;
      /** Undo all levels, not just one. */
      readonly all: boolean;
      /** The latest deadline of an acquire of this owner that may still be under way; 0 when there is none: no mark. */
      readonly deadlineMs: number;
      /** The latest acquire that this ends. */
      readonly attempt?: number;
    }
  /** Leaves the queue; when the lock was granted meanwhile, gives it back. A mark stops an acquire that is still under way. */
  | {
      readonly type: 'cancel';
      readonly lock: LockId;
      readonly owner: Owner;
      /** The latest deadline of an acquire of this owner that may still be under way; the mark lives as long. */
      readonly deadlineMs: number;
      /** The acquire that this ends. */
      readonly attempt?: number;
    }
  /** From all who hold it. Who does it, and why, stays on record if either is said (F1 of `procedures.ts`). */
  | { readonly type: 'forceRelease'; readonly lock: LockId; readonly by?: string; readonly reason?: string }
  /**
   * The holder keeps the lock, shared from now on, under a new version; it waits for its upgrade no longer. Asked again
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
   * How many permits a semaphore has from now on, also when nobody uses it. Nobody loses permits that it holds. 0: what
   * was set is forgotten, and who acquires when nobody uses the semaphore says how many there are.
   */
  | { readonly type: 'setCapacity'; readonly lock: LockId; readonly capacity: number }
  /** Changes what is shown with a hold. */
  | {
      readonly type: 'setData';
      readonly lock: LockId;
      readonly owner: Owner;
      /** Of the grant that it is about; another one's data are left alone. */
      readonly version: number;
      readonly data: Bytes;
    }
  /**
   * How many levels the holder has entered, for those who count them themselves: as it is no step but says how many
   * there are, it can be repeated. At least 1, as the last level ends by a release.
   */
  | {
      readonly type: 'setDepth';
      readonly lock: LockId;
      readonly owner: Owner;
      /** Of the grant that it is about. */
      readonly version: number;
      readonly depth: number;
    }
  /** Forgets what earlier holders left with the lock, and who took it by force. */
  | { readonly type: 'forget'; readonly lock: LockId }
  /** Asks all who hold the lock to let go of it within `forMs`, 1 to `REVOKE_MAX_MS` (V1 of `revocation.ts`). */
  | {
      readonly type: 'revoke';
      readonly lock: LockId;
      /** Who asks, and why: for people. At most 128 and 256 bytes of UTF-8. */
      readonly by: string;
      readonly reason: string;
      readonly forMs: number;
    }
  /** Ends a hold that is delayed. Only the leader of the lock's range sends it, when its time has passed. */
  | { readonly type: 'endDelay'; readonly lock: LockId; readonly owner: Owner; readonly version: number };

/** Queries read a lock and go through ReadIndex. */
export type LockQuery =
  | {
      readonly type: 'show';
      readonly lock: LockId;
      /** Who asks knows all kinds of locks; otherwise all are told of as exclusive ones, as they were once. */
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
  | { readonly type: 'check'; readonly checks: readonly { readonly lock: LockId; readonly version: number }[] };

/** One grant. `version` is the fencing version: the revision of the command that granted. */
export interface Holder {
  readonly owner: PublicOwner;
  readonly version: number;
  readonly depth: number;
  /** The wall time that the granting leader stamped, in ms; for display. */
  readonly lockTimeMs: number;
  readonly data: Bytes;
}

/** How a holder has a lock: alone, with other readers, or with some of its permits. */
export type HoldMode = 'exclusive' | 'shared' | 'permits';

export interface HolderState extends Holder {
  readonly mode: HoldMode;
  /** How many permits it has; 0 unless the lock is a semaphore. */
  readonly permits: number;
  /** Its data stay with the lock. */
  readonly keepsData: boolean;
  /** For how long it keeps others off after its session has ended. */
  readonly delayMs: number;
  /** Its session has ended, and that time is not over. */
  readonly delayed: boolean;
}

export interface Waiter {
  readonly owner: PublicOwner;
  /** 1 is next. */
  readonly position: number;
  /** The wall time that the leader stamped when it joined the queue, in ms; for display. */
  readonly sinceMs: number;
  /** `upgrade`: it holds the lock shared, and wants it alone. */
  readonly mode: HoldMode | 'upgrade';
  readonly permits: number;
}

/** A hold or a place in a queue, as seen from its session. */
export interface SessionLock {
  readonly lock: LockId;
  /** As in `PublicOwner`. */
  readonly ownerId: string;
  readonly mode: Waiter['mode'];
  readonly permits: number;
  /** Of the grant, and how deep; 0 while it waits. */
  readonly version: number;
  readonly depth: number;
  /** In the queue; 0 when it holds. */
  readonly position: number;
}

export interface LockState {
  readonly lock: LockId;
  /** How it is held at the moment: by one, by readers, or as a semaphore, which it stays for as long as it is used. */
  readonly kind: 'exclusive' | 'shared' | 'semaphore';
  /** In the order of their grants: at most 1,000 in `show`, 10 in `list`. */
  readonly holders: readonly HolderState[];
  readonly holderCount: number;
  /** The first of the queue, in order: at most 1,000 in `show`, 10 in `list`, without those whose wait is over. */
  readonly waiters: readonly Waiter[];
  /** How many wait in all; counts those whose wait is over until a hand-over passes them by. */
  readonly waiterCount: number;
  /** Of a semaphore: how many permits are held, and how many there are; 0 for others. */
  readonly permits: number;
  readonly capacity: number;
  /** What a holder left with the lock; undefined: nothing. */
  readonly keptData: Bytes | undefined;
  /** How many wait until it is free, or until enough share it, without queueing for it. */
  readonly passing: number;
  /** The last time that it was taken by force, if that was put on record. */
  readonly forced: ForcedRelease | undefined;
  /** What is asked of those who hold it; absent: nothing. */
  readonly revocation?: Revocation | undefined;
}

export interface ForcedRelease {
  /** The leader's wall time, in ms; for display. */
  readonly atMs: number;
  /** As whoever did it said. */
  readonly by: string;
  readonly reason: string;
  /** Of the newest grant that was ended. */
  readonly version: number;
}

/** Somebody asks those who hold a lock to let go of it. */
export interface Revocation {
  /** Of the command that asked: tells requests apart. */
  readonly revision: number;
  /** Grants up to this version are asked for. */
  readonly version: number;
  readonly by: string;
  readonly reason: string;
  /** Range time after which it is void. */
  readonly untilMs: number;
  /** The wall time that the leader stamped when it was asked, in ms; for display. */
  readonly sinceMs: number;
}

export type LockResult =
  | {
      readonly type: 'granted';
      readonly version: number;
      readonly depth: number;
      readonly lockTimeMs: number;
      /** What an earlier holder left with the lock; absent: nothing. */
      readonly keptData?: Bytes;
    }
  /** `position` is exact when joining; when asked again it is an upper bound, as others may have left from the middle. */
  | { readonly type: 'queued'; readonly position: number }
  | { readonly type: 'busy'; readonly holder: Holder }
  /** `depth`: levels still held. `version`: of the grant that was released. */
  | { readonly type: 'released'; readonly depth: number; readonly version: number }
  /** Answers `setCapacity`. */
  | { readonly type: 'capacity'; readonly permits: number; readonly capacity: number }
  /** Answers `revoke`: grants up to this version are asked for. */
  | { readonly type: 'revoking'; readonly version: number }
  /** Answers `forget`: whether there was anything. */
  | { readonly type: 'forgotten'; readonly any: boolean }
  /** `released`: a grant, a level of it or an upgrade was given back. */
  | { readonly type: 'canceled'; readonly released: boolean }
  /** Refused, or a waiter that left the queue without a grant: `code` says why. */
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
  | { readonly type: 'check'; readonly current: readonly boolean[] };

/** Something that a procedure caused for somebody else: an open call of that owner is answered with it. */
export interface LockNotice {
  readonly lock: LockId;
  readonly owner: Owner;
  readonly result: LockResult;
}

/** A hold whose session has ended, and which keeps others off for a while: `delayMs` from now on, by its leader's clock. */
export interface DelayedHold {
  readonly lock: LockId;
  readonly owner: Owner;
  readonly version: number;
  readonly delayMs: number;
}

/** What the end of a session causes in a lock. */
export interface SessionEnd {
  readonly notices: readonly LockNotice[];
  readonly delayed: readonly DelayedHold[];
}

export interface LockOutcome {
  readonly result: LockResult;
  readonly notices: readonly LockNotice[];
}
