import type { NodeHeartbeat, NodeTask, RangeDescriptor, RangeReport } from '@remora/protocol';
import type { MasterState } from './state.ts';

/**
 * Which replicas a node is to create and to take away, from what it holds and what it ought to hold.
 *
 * RT1. A node that holds another replica of the range than its own is asked to create that one all the same: it takes the
 *      other away first, or knows better.
 * RT2. A replica that hears no leader and asks whether it belongs is told "no" only from a `confVersion` above its own
 *      (design §5 ▸): a master that is behind does not know of one that has just joined. No other answer is given: it
 *      asks again.
 */
export function replicaTasks(state: MasterState, { nodeId, ranges }: NodeHeartbeat): readonly NodeTask[] {
  const present = new Set(ranges.map(({ replicaId }) => replicaId));
  const tasks: NodeTask[] = [];
  for (const descriptor of state.ranges()) {
    const replica = descriptor.replicas.find((r) => r.nodeId === nodeId);
    if (replica === undefined || present.has(replica.replicaId)) continue;
    tasks.push({ type: 'createReplica', descriptor, replicaId: replica.replicaId }); // RT1
  }
  for (const report of ranges) {
    const range = state.range(report.rangeId);
    if (!report.silent || range === undefined || !wasRemoved(range, report)) continue;
    const { rangeId, replicaId } = report;
    tasks.push({ type: 'removeReplica', rangeId, replicaId, confVersion: range.epoch.confVersion });
  }
  return tasks;
}

/** RT2. */
export function wasRemoved({ epoch, replicas }: RangeDescriptor, report: RangeReport): boolean {
  return epoch.confVersion > report.epoch.confVersion && replicas.every((r) => r.replicaId !== report.replicaId);
}
