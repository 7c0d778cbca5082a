import type { Row } from '@remora/base';
import type {
  DelayedHold,
  LockCommand,
  LockEvent,
  LockId,
  LockMeter,
  LockNotice,
  LockResult,
  MarkedUntil,
} from '@remora/lock';
import type { KvEvent } from '@remora/protocol';
import type { HandedTransactions } from '../transactions/prepared-part.ts';
import type { Lease } from './leases/leases.ts';
import type { RangeMeta } from './meta-codec.ts';
import type { Outcomes } from './outcomes/outcomes.ts';
import type { RangeFields } from './range-fields.ts';

type ForceRelease = Extract<LockCommand, { readonly type: 'forceRelease' }>;

/** What an applied command causes beside its outcome, told to whoever serves the range on this node. */
export interface Effects {
  onEvents(revision: number, events: readonly KvEvent[]): void;
  onNotice(notice: LockNotice): void;
  /** Those who listen to locks, on a replica that has any. */
  readonly listeners?: LockAudience;
  /** A lock was taken from whoever held it; `version` is that of the newest grant. */
  onForcedRelease?(command: ForceRelease, version: number): void;
  /** The session of its owner has ended, or it has come here from another range. */
  onHoldDelayed(hold: DelayedHold): void;
  /** A grant of this version is not its owner's any more; that can be read when the entry is applied. */
  onGrantEnded?(lock: LockId, version: number): void;
  /** A lock has a mark that has to go when its end has passed (M4 of the lock layer). */
  onMarkLeft?(mark: MarkedUntil): void;
  /** Counts what is applied, on the replica that leads. */
  readonly meter?: RangeMeter | undefined;
  onLeaseGranted(lease: Lease): void;
  /** The lease is alive no more. Without `end` its record went to another range, where it may be alive. */
  onLeaseEnded(id: bigint, end?: AppliedEnd): void;
  /**
   * The range ends where the child begins, by an entry of this term. Leases that went with it have ended here
   * (`onLeaseEnded`).
   */
  onSplit(child: RangeStart, term: number): void;
  /** The range was sealed for a merge, or unsealed, or was so already. */
  onSealed(): void;
  /**
   * The sealed source of a merge, which is on this node as it is on all that have the target (range/reshape/merges.ts
   * MR3).
   */
  source(rangeId: number): RangeFields;
  /** The range has the keys of the source now, whose replica on this node ends in this step. */
  onMerged(sourceId: number): void;
}

/** The entry that ended a lease. */
export interface AppliedEnd {
  readonly revision: number;
  /** Nothing is left of the lease, here or in another range. Otherwise it stays as one that is ending. */
  readonly isWhole: boolean;
}

/** Whoever wants to be told what happens to locks. */
export interface LockAudience {
  /** Whether anybody listens to the lock. */
  wants(lock: LockId): boolean;
  /** What a command has done to it. */
  publish(lock: LockId, revision: number, events: readonly LockEvent[]): void;
}

/** Counts what happens to sessions and locks: for statistics, nothing depends on it. */
export interface RangeMeter extends LockMeter {
  /** A command about a lock. */
  answered(result: LockResult): void;
  /** A session, an acquire or a write that was refused before it was proposed. */
  overLimit(limit: Limit): void;
  sessionOpened(): void;
  sessionEnded(how: SessionEnd): void;
}

/**
 * What a range lets in no more of: sessions, locks, what is said with them; and values, while the disk has no room for
 * them.
 */
export type Limit = 'sessions' | 'session_locks' | 'waiters' | 'data' | 'disk';

/** Ended by its client, or by its time. */
export type SessionEnd = 'closed' | 'expired';

/** What a range begins with that comes from another one. */
export interface RangeStart {
  readonly meta: RangeMeta;
  readonly outcomes: Outcomes;
  readonly transactions: HandedTransactions;
  /** Its references to leases (lease-split.ts). */
  readonly references: readonly Row[];
  /** The holds of its locks that are delayed (delayed-holds.ts DH2). */
  readonly delays: readonly DelayedHold[];
}
