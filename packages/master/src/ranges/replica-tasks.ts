import type { NodeHeartbeat, NodeTask, RangeDescriptor, RangeReport } from '@remora/protocol';
import type { MasterState } from '../metadata/master-state.ts';

/**
 * Decides which replicas a node must create and remove, from what it holds and what it should hold.
 *
 * RT1. A node that holds another replica of a range than the one it should hold is still asked to create the latter.
 *      The node removes the other one first, or knows better.
 * RT2. The master orders a node to remove a replica only on the basis of a `confVersion` above its own (design §5 ▸),
 *      because a master that lags does not know of a replica that has just joined. The replica need not ask: ids are
 *      never assigned twice, and a removed replica has no vote (membership.ts M3). Until it is gone, its node can hold
 *      no other range that shares keys with it.
 * RT3. The replica of a range that was merged away is removed whatever its version, because the range never returns.
 *      But it is removed only when it hears no leader and asks, because a split in progress may be about to give its
 *      node a replica of the range that now has its keys. And it is not removed while its node holds a replica of the
 *      range that took over its keys: that replica still has to take them over from it, and could not continue without
 *      them.
 */
export function replicaTasks(state: MasterState, { nodeId, ranges }: NodeHeartbeat): readonly NodeTask[] {
  const present = new Set(ranges.map(({ replicaId }) => replicaId));
  const tasks: NodeTask[] = [];
  for (const descriptor of state.ranges()) {
    const replica = descriptor.replicas.find((r) => r.nodeId === nodeId);
    if (replica === undefined || present.has(replica.replicaId)) continue;
    tasks.push({ type: 'createReplica', descriptor, replicaId: replica.replicaId }); // RT1
  }
  const held = new Set(ranges.map(({ rangeId }) => rangeId));
  for (const report of ranges) {
    const confVersion = removedAt(state, report, held);
    if (confVersion === undefined) continue;
    const { rangeId, replicaId } = report;
    tasks.push({ type: 'removeReplica', rangeId, replicaId, confVersion });
  }
  return tasks;
}

/** The version of the membership in which a replica is missing; undefined if it may belong. */
function removedAt(state: MasterState, report: RangeReport, held: ReadonlySet<number>): number | undefined {
  const range = state.range(report.rangeId);
  if (range === undefined) {
    return report.silent && isOrphan(state, report.rangeId, held) ? report.epoch.confVersion + 1 : undefined; // RT3
  }
  return wasRemoved(range, report) ? range.epoch.confVersion : undefined;
}

/** RT2. */
export function wasRemoved({ epoch, replicas }: RangeDescriptor, report: RangeReport): boolean {
  return epoch.confVersion > report.epoch.confVersion && replicas.every((r) => r.replicaId !== report.replicaId);
}

/** RT3. The range that has the keys may itself have been merged away. */
function isOrphan(state: MasterState, rangeId: number, held: ReadonlySet<number>): boolean {
  let owner = state.mergedInto(rangeId);
  if (owner === undefined) return false;
  for (; owner !== undefined; owner = state.mergedInto(owner)) if (held.has(owner)) return false;
  return true;
}
