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

/** Receives the effects of an applied command, other than its outcome, on the node that serves the range. */
export interface Effects {
  onEvents(revision: number, events: readonly KvEvent[]): void;
  onNotice(notice: LockNotice): void;
  /** The listeners to locks, on a replica that has any. */
  readonly listeners?: LockAudience;
  /** A lock was taken from its holders; `version` is that of the newest grant. */
  onForcedRelease?(command: ForceRelease, version: number): void;
  /** The session of the hold's owner has ended, or the hold came here from another range. */
  onHoldDelayed(hold: DelayedHold): void;
  /** A grant of this version no longer belongs to its owner; reads see that once the entry is applied. */
  onGrantEnded?(lock: LockId, version: number): void;
  /** A lock has a mark that must be removed when its end has passed (M4 of the lock layer). */
  onMarkLeft?(mark: MarkedUntil): void;
  /** Counts what is applied, on the replica that leads. */
  readonly meter?: RangeMeter | undefined;
  onLeaseGranted(lease: Lease): void;
  /** The lease is no longer alive here. Without `end` its record went to another range, where it may be alive. */
  onLeaseEnded(id: bigint, end?: AppliedEnd): void;
  /**
   * The range ends where the child begins, by an entry of this term. Leases that went with it have ended here
   * (`onLeaseEnded`).
   */
  onSplit(child: RangeStart, term: number): void;
  /** The range was sealed for a merge, or unsealed, or was in that state already. */
  onSealed(): void;
  /**
   * Returns the sealed source of a merge. Every node with a replica of the target has one of the source
   * (range/reshape/merges.ts MR3).
   */
  source(rangeId: number): RangeFields;
  /** The range has the keys of the source now; the source's replica on this node ends in this step. */
  onMerged(sourceId: number): void;
}

/** The entry that ended a lease. */
export interface AppliedEnd {
  readonly revision: number;
  /** Nothing is left of the lease, here or in another range. Otherwise the lease stays in the state *ending*. */
  readonly isWhole: boolean;
}

/** Receives the events of locks. */
export interface LockAudience {
  /** Whether there are listeners to the lock. */
  wants(lock: LockId): boolean;
  /** The events that a command caused at the lock. */
  publish(lock: LockId, revision: number, events: readonly LockEvent[]): void;
}

/** Counts what happens to sessions and locks. For statistics only: nothing depends on it. */
export interface RangeMeter extends LockMeter {
  /** The result of a command about a lock. */
  answered(result: LockResult): void;
  /** A session, an acquire or a write that was refused before it was proposed. */
  overLimit(limit: Limit): void;
  sessionOpened(): void;
  sessionEnded(how: SessionEnd): void;
}

/**
 * The limits at which a range refuses more: sessions, their locks, waiters, the data attached to them; and values,
 * while the disk has no room for them.
 */
export type Limit = 'sessions' | 'session_locks' | 'waiters' | 'data' | 'disk';

/** Whether its client closed the session, or its time ran out. */
export type SessionEnd = 'closed' | 'expired';

/** The state with which a range begins when it comes from another one. */
export interface RangeStart {
  readonly meta: RangeMeta;
  readonly outcomes: Outcomes;
  readonly transactions: HandedTransactions;
  /** Its references to leases (lease-split.ts). */
  readonly references: readonly Row[];
  /** The holds of its locks that are delayed (delayed-holds.ts DH2). */
  readonly delays: readonly DelayedHold[];
}
