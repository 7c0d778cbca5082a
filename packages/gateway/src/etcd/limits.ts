import { REQUEST_LIMITS, type RequestLimits } from '../request-limits.ts';

/** Limits of the etcd services, all of them checked before anything is sent to a range. */
export interface EtcdLimits extends RequestLimits {
  /** Transactions inside transactions. */
  readonly txnDepthMax: number;
  /** Watches on one stream; a further one is answered as canceled. */
  readonly watchesPerStreamMax: number;
  /** Creates and progress requests of one stream that wait for an answer; then the stream is not read further. */
  readonly watchRequestsPendingMax: number;
  /** About how many bytes of events go into one message of a watch that asked for fragments. */
  readonly fragmentBytes: number;
  /** How often an idle watch that asked for it hears of progress. */
  readonly progressIntervalMs: number;
  /** Heartbeats of one stream that wait for an answer; then the stream is not read further. */
  readonly keepAlivesPendingMax: number;
}

/** As etcd's defaults where it has them (progress every 10 minutes). */
export const ETCD_LIMITS: EtcdLimits = {
  ...REQUEST_LIMITS,
  txnDepthMax: 8,
  watchesPerStreamMax: 10_000,
  watchRequestsPendingMax: 256,
  fragmentBytes: 1024 * 1024,
  progressIntervalMs: 600_000,
  keepAlivesPendingMax: 1_024,
};
