/** What is wrong with a cluster when a case has ended: one statement per fault. */
import { memberIds, type SimRange } from './sim-range.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

export function perNode(cluster: SimulatedCluster, of: (range: SimRange, nodeId: number) => number): readonly number[] {
  const counted = [...cluster.nodes.values()].filter(({ alive, duty }) => alive && duty === 'serving');
  const sums = new Map(counted.map(({ nodeId }) => [nodeId, 0]));
  for (const range of cluster.ranges.values()) {
    for (const nodeId of memberIds(range)) {
      const sum = sums.get(nodeId);
      if (sum !== undefined) sums.set(nodeId, sum + of(range, nodeId));
    }
  }
  return [...sums.values()];
}

/** The differences that are allowed: a share of the mean, or an amount. */
export function spread(
  what: string,
  values: readonly number[],
  allowed: { percent: number; atLeast: number },
): string[] {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const limit = Math.max(allowed.atLeast, (mean * allowed.percent) / 100);
  return most - least <= limit ? [] : [`${what}: ${least} to ${most} per node, at most ${limit} apart is allowed`];
}

export const isLeader = (range: SimRange, nodeId: number): number => (range.leader === nodeId ? 1 : 0);

export function leadersEven(cluster: SimulatedCluster): string[] {
  return spread('leaders', perNode(cluster, isLeader), { percent: 10, atLeast: 1 });
}

function replicasEven(cluster: SimulatedCluster): string[] {
  return spread(
    'replicas',
    perNode(cluster, () => 1),
    { percent: 10, atLeast: 1 },
  );
}

export function allReplicated(cluster: SimulatedCluster): string[] {
  const { replicas } = cluster.scheduling.settings;
  return [...cluster.ranges.values()].flatMap((range) => {
    const live = [...range.voters.keys()].filter((nodeId) => cluster.node(nodeId).alive);
    const right = live.length === replicas && memberIds(range).size === replicas;
    return right ? [] : [`range ${range.rangeId} has ${live.length} live voters of ${memberIds(range).size} replicas`];
  });
}

export function emptyNode(cluster: SimulatedCluster, nodeId: number): string[] {
  const left = [...cluster.ranges.values()].filter((range) => memberIds(range).has(nodeId)).length;
  return left === 0 ? [] : [`node ${nodeId} still has ${left} replicas`];
}

export function ledNowhere(cluster: SimulatedCluster, nodeId: number): string[] {
  const left = [...cluster.ranges.values()].filter(({ leader }) => leader === nodeId).length;
  return left === 0 ? [] : [`node ${nodeId} still leads ${left} ranges`];
}

/** Ranges with more replicas in one zone than need be. */
export function zonesApart(cluster: SimulatedCluster): string[] {
  return [...cluster.ranges.values()].flatMap((range) => {
    const used = [...memberIds(range)].map((nodeId) => cluster.node(nodeId).labels.zone);
    const all = new Set([...cluster.nodes.values()].filter(({ alive }) => alive).map(({ labels }) => labels.zone));
    const wanted = Math.min(all.size, used.length);
    return new Set(used).size >= wanted ? [] : [`range ${range.rangeId} is in zones ${used.join(', ')}`];
  });
}

export function even(cluster: SimulatedCluster): string[] {
  return [...allReplicated(cluster), ...replicasEven(cluster), ...leadersEven(cluster)];
}
