import type { SplitPolicy } from '@remora/protocol';
import type { LockLimitOptions } from './locks/lock-limits.ts';

export interface RangeOptions {
  /** Memory for recent events of a range, from which watches are served. */
  readonly watchRingBytesMax: number;
  /** The limit for all ranges of a node together, divided equally; absent: no such limit. */
  readonly watchRingsBytesMax?: number;
  /** How long old versions stay readable before they are compacted; 0: until a client compacts. */
  readonly compactionRetentionMs: number;
  /** Memory for remembered outcomes; beyond it new commands are refused until deadlines pass. */
  readonly outcomeBytesMax: number;
  /** A leader's limits for sessions and locks; absent: LOCK_LIMITS. */
  readonly lockLimits?: LockLimitOptions;
  /**
   * How long the client of a lease is silent before the remaining time is logged; absent: the default of LeaseKeeper.
   */
  readonly leaseCheckpointMs?: number;
  /**
   * How often homes are asked whether they still know the leases with attachments here; absent: the default of
   * LeaseAudit.
   */
  readonly leaseAuditMs?: number;
  /** An entry records the range time at least this often, so that it falls back little when the leader changes. */
  readonly timeCarryMs: number;
  /** When ranges are split automatically, until the master sets another policy; absent: never until then. */
  readonly splits?: SplitPolicy;
}

/**
 * Work that a replica has begun and not ended. Every count is 0 when no client asks for anything; otherwise something
 * leaked.
 */
export interface RangeInFlight {
  /** Commands that wait to be proposed, or for their outcome. */
  readonly proposals: number;
  /** Open calls of waiters in queues of locks. */
  readonly lockCalls: number;
  readonly watches: number;
  /** Leases whose deadlines are kept here. */
  readonly leasesKept: number;
  /** Prepared parts and kept records of transactions over several ranges. */
  readonly transactions: number;
  /** Commands and reads that wait for such transactions. */
  readonly transactionWaits: number;
}

/** Registers a function that is called when the caller no longer wants the answer. */
export type OnCancel = (fn: () => void) => void;
