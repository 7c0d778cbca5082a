/** Isolation of the replicas of a range: by zone, rack, host, or other levels. */
import type { ClusterView } from './cluster-model.ts';

type Labels = Readonly<Record<string, string>>;

/** One pair that shares a level costs more than all pairs that share only the level above: ranges have few replicas. */
const LEVEL_FACTOR = 64;

/**
 * The isolation cost of a set of nodes, 0 for the best isolation: each pair costs by the narrowest level that it
 * shares. `levels` go from wide to narrow. If a node has no label for a level, it counts as sharing it.
 */
export function isolationCost(model: ClusterView, nodeIds: readonly number[], levels: readonly string[]): number {
  let cost = 0;
  for (let i = 1; i < nodeIds.length; i++) {
    const a = labelsOf(model, nodeIds[i]);
    for (let j = 0; j < i; j++) cost += pairCost(a, labelsOf(model, nodeIds[j]), levels);
  }
  return cost;
}

/** The cost that a node would add to a set that it is not in. */
export function costOfJoining(
  model: ClusterView,
  nodeId: number,
  others: readonly number[],
  levels: readonly string[],
): number {
  const labels = labelsOf(model, nodeId);
  let cost = 0;
  for (const other of others) cost += pairCost(labels, labelsOf(model, other), levels);
  return cost;
}

function pairCost(a: Labels, b: Labels, levels: readonly string[]): number {
  let cost = 0;
  for (const level of levels) {
    const [mine, other] = [a[level], b[level]];
    if (mine !== undefined && other !== undefined && mine !== other) return cost;
    cost = cost === 0 ? 1 : cost * LEVEL_FACTOR;
  }
  return cost;
}

const NO_LABELS: Labels = {};

function labelsOf(model: ClusterView, nodeId: number | undefined): Labels {
  return (nodeId === undefined ? undefined : model.node(nodeId)?.info.labels) ?? NO_LABELS;
}
