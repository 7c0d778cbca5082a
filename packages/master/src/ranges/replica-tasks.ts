import type { NodeHeartbeat, NodeTask, RangeDescriptor, RangeReport } from '@remora/protocol';
import type { MasterState } from '../metadata/master-state.ts';

/**
 * Which replicas a node is to create and to take away, from what it holds and what it ought to hold.
 *
 * RT1. A node that holds another replica of the range than its own is asked to create that one all the same: it takes the
 *      other away first, or knows better.
 * RT2. A replica is told that it does not belong only from a `confVersion` above its own (design §5 ▸): a master that is
 *      behind does not know of one that has just joined. It need not ask: ids are never given twice, and what was removed
 *      has no vote (membership.ts M3). Until it is gone, its node can hold no other range that shares keys with it.
 * RT3. A replica of a range that was merged away is told so from whatever version it has, as the range never comes back;
 *      but only when it hears no leader and asks, as a split may be under way there by which its node gets a replica of the
 *      range that has its keys. And not while its node holds a replica of the range that has its keys: that one is still to take them over from
 *      it, and without them it could not go on.
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

/** The version of the membership as of which a replica does not belong; undefined when it may. */
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

/** RT3. Whoever has the keys may have been merged away in turn. */
function isOrphan(state: MasterState, rangeId: number, held: ReadonlySet<number>): boolean {
  let owner = state.mergedInto(rangeId);
  if (owner === undefined) return false;
  for (; owner !== undefined; owner = state.mergedInto(owner)) if (held.has(owner)) return false;
  return true;
}
