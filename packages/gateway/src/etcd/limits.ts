import { REQUEST_LIMITS, type RequestLimits } from '../request-limits.ts';

/** Limits of the etcd services. All are checked before anything is sent to a range. */
export interface EtcdLimits extends RequestLimits {
  /** Levels of nested transactions. */
  readonly txnDepthMax: number;
  /** Watches on one stream; further ones are answered as canceled. */
  readonly watchesPerStreamMax: number;
  /** Creates and progress requests of one stream without an answer; above it the stream is not read further. */
  readonly watchRequestsPendingMax: number;
  /** About how many bytes of events a message has if the watch asked for fragments. */
  readonly fragmentBytes: number;
  /** Interval of progress messages to an idle watch that asked for them. */
  readonly progressIntervalMs: number;
  /** Heartbeats of one stream without an answer; above it the stream is not read further. */
  readonly keepAlivesPendingMax: number;
}

/** The defaults of etcd where it has them (progress every 10 minutes). */
export const ETCD_LIMITS: EtcdLimits = {
  ...REQUEST_LIMITS,
  txnDepthMax: 16,
  watchesPerStreamMax: 10_000,
  watchRequestsPendingMax: 256,
  fragmentBytes: 1024 * 1024,
  progressIntervalMs: 600_000,
  keepAlivesPendingMax: 1_024,
};
