/**
 * The replicated fields of a range's state, for the files that read or change some of them. `RangeState` owns all of
 * them. Only the procedures that it calls while it applies an entry may change one (A1 of range-state.ts); every other
 * file takes a `Readonly` view.
 */
import type { RangeDescriptor } from '@remora/protocol';
import type { ConfState, LogPosition } from '@remora/raft';
import type { RangeTransactions } from '../transactions/range-transactions.ts';
import type { RangeBounds } from './bounds.ts';
import type { LeaseOwnership } from './leases/lease-ownership.ts';
import type { LeaseReferences } from './leases/lease-references.ts';
import type { Leases } from './leases/leases.ts';
import type { DelayedHolds } from './locks/delayed-holds.ts';
import type { Outcomes } from './outcomes/outcomes.ts';
import type { Merging } from './reshape/merging.ts';

/** Which keys and members the range has, and its part in merges. */
export interface RangeShape {
  readonly rangeId: number;
  descriptor: RangeDescriptor;
  /** The bounds from the descriptor. */
  readonly bounds: RangeBounds;
  conf: ConfState;
  merging: Merging;
}

/** How far the range is: in its log, in its revisions and in time. */
export interface RangeProgress {
  applied: LogPosition;
  revision: number;
  compactRevision: number;
  /** The leader's monotonic time, in ms, from the last applied batch. */
  rangeTimeMs: number;
  wallMs: number;
}

/** The number of plain keys, and the bytes of their keys and values (range-stats.ts). */
export interface RangeCounts {
  keys: number;
  bytes: number;
  /** The index of the entry since which both are estimates; 0: both are exact. */
  estimatedSince: number;
}

export interface RangeLeases {
  /** Leases whose home is this range. */
  readonly leases: Leases;
  /** References to leases of other ranges. */
  readonly references: LeaseReferences;
  readonly leaseOwnership: LeaseOwnership;
}

export interface RangeFields extends RangeShape, RangeProgress, RangeCounts, RangeLeases {
  outcomes: Outcomes;
  readonly delays: DelayedHolds;
  /** Parts and records of transactions over several ranges. */
  transactions: RangeTransactions;
}
