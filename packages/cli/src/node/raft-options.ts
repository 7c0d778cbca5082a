import type { HostOptions } from '@remora/raft';
import type { NodeOptions } from '../node-options.ts';

/** Length of one Raft tick: heartbeats and election timeouts are whole numbers of it. */
const TICK_MS = 25;
/**
 * The spread of followers' waits for a leader. Of the two followers that remain in a usual group, the first campaigns
 * after a third of the spread on average. With the default time-outs both campaign within the 5 ms of an election in
 * one of 20 cases, and then wait once more.
 */
const ELECTION_SPREAD_PERCENT = 50;

/** Returns a node's Raft options, from its own options. */
export function raftOptions(options: NodeOptions): Partial<HostOptions> {
  const { snapshotBytesPerSecondMax, snapshotBytesPerSecondBusy, snapshotSendsMax, snapshotReceivesMax } = options;
  return {
    tickMs: TICK_MS,
    heartbeatTicks: Math.max(1, Math.round(options.heartbeatInterval / TICK_MS)),
    electionTicks: Math.max(3, Math.round(options.electionTimeout / TICK_MS)),
    electionSpreadPercent: ELECTION_SPREAD_PERCENT,
    snapshotBytesPerSecondMax,
    snapshotBytesPerSecondBusy,
    snapshotSendsMax,
    snapshotReceivesMax,
  };
}
