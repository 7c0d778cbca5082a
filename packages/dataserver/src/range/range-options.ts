import type { SplitPolicy } from '@remora/protocol';
import type { LockLimitOptions } from './locks/lock-limits.ts';

export interface RangeOptions {
  /** Memory for recent events of a range, from which watches are served. */
  readonly watchRingBytesMax: number;
  /** The same of all ranges of a node together, each of which has an equal part; absent: however much that is. */
  readonly watchRingsBytesMax?: number;
  /** How long old versions stay readable before they are compacted; 0: until compacted by hand. */
  readonly compactionRetentionMs: number;
  /** Memory for remembered outcomes; beyond it new commands are refused until deadlines pass. */
  readonly outcomeBytesMax: number;
  /** What a leader lets in of sessions and locks; absent: LOCK_LIMITS. */
  readonly lockLimits?: LockLimitOptions;
  /** How long the client of a lease is silent before what is left of it is logged; absent: as LeaseKeeper says. */
  readonly leaseCheckpointMs?: number;
  /**
   * How often homes are asked whether they still know the leases that have something here; absent: as LeaseAudit says.
   */
  readonly leaseAuditMs?: number;
  /** Range time is carried on by an entry at least this often, so that it falls back little when the leader changes. */
  readonly timeCarryMs: number;
  /** When ranges are split by themselves, until the master says otherwise; absent: until then none is. */
  readonly splits?: SplitPolicy;
}

/** What a replica has begun and not ended. All of it is 0 when no client asks for anything: what stays is leaked. */
export interface RangeInFlight {
  /** Commands that wait to be proposed, or for their outcome. */
  readonly proposals: number;
  /** Open calls of those who wait in queues of locks. */
  readonly lockCalls: number;
  readonly watches: number;
  /** Leases whose time is kept here. */
  readonly leasesKept: number;
  /** Parts that are prepared and records that are kept, of transactions over several ranges. */
  readonly transactions: number;
  /** Commands and reads that wait for such. */
  readonly transactionWaits: number;
}

/** Calls back when whoever asked no longer cares for the answer. */
export type OnCancel = (fn: () => void) => void;
