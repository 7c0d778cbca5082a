import type { HostOptions } from '@remora/raft';
import type { NodeOptions } from '../node-options.ts';

/** Length of one Raft tick: heartbeats and election timeouts are whole numbers of it. */
const TICK_MS = 25;

/** How a node runs its Raft groups, by its own options. */
export function raftOptions(options: NodeOptions): Partial<HostOptions> {
  const { snapshotBytesPerSecondMax, snapshotBytesPerSecondBusy, snapshotSendsMax, snapshotReceivesMax } = options;
  return {
    tickMs: TICK_MS,
    heartbeatTicks: Math.max(1, Math.round(options.heartbeatInterval / TICK_MS)),
    electionTicks: Math.max(3, Math.round(options.electionTimeout / TICK_MS)),
    snapshotBytesPerSecondMax,
    snapshotBytesPerSecondBusy,
    snapshotSendsMax,
    snapshotReceivesMax,
  };
}
