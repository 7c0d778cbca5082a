/** Times that the log and the Raft host measure. A measurement costs one addition. */
import { type Clock, type Histogram, type Logger, type Metrics, RareLog } from '@remora/base';
import type { HostTimes, NodeId } from '@remora/raft';

/** For the disk of the log: takes the time of each sync, and logs slow ones, at most one a minute. */
export function logSyncTimes(
  metrics: Metrics,
  { clock, logger, slowMs }: { readonly clock: Clock; readonly logger: Logger; readonly slowMs: number },
): (tookMs: number) => void {
  const seconds = metrics.histogram({
    name: 'remora_log_sync_seconds',
    help: 'Time of a synced write to the log.',
  });
  const log = new RareLog(clock, logger);
  return (tookMs) => {
    seconds.observe(tookMs / 1_000);
    if (slowMs === 0 || tookMs < slowMs) return;
    log.warn('sync', { tookMs: Math.round(tookMs) }, 'a synced write to the log was slow: its disk is slow or busy');
  };
}

export function hostTimes(metrics: Metrics): HostTimes {
  const appends = metrics.histogram({
    name: 'remora_log_append_seconds',
    help: 'Time from an append to the log until it is durable: its wait for the write before it, and its own.',
  });
  const roundTrips = metrics.histogram({
    ...{ name: 'remora_peer_round_trip_seconds', labels: ['peer'] },
    help: 'Time from a heartbeat to a node, by its id, until the reply.',
  });
  const byPeer = new Map<NodeId, Histogram>();
  return {
    appended: (tookMs) => appends.observe(tookMs / 1_000),
    roundTrip(node, tookMs) {
      let histogram = byPeer.get(node);
      if (histogram === undefined) {
        histogram = roundTrips.labels(String(node));
        byPeer.set(node, histogram);
      }
      histogram.observe(tookMs / 1_000);
    },
  };
}
