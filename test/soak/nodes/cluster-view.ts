/** The view of the cluster in the scenarios of nodes: which node has and leads which replicas. */
import type { AdminClient } from 'remora/admin';

interface NodeSeen {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly duty: string;
  /** Voters and learners, then the ranges that it leads, according to the ranges. */
  readonly replicas: number;
  readonly leaders: number;
}

export interface RangeSeen {
  readonly id: number;
  readonly leaderNode: number;
  readonly replicas: readonly { readonly nodeId: number; readonly type: string }[];
}

export interface ClusterSeen {
  readonly nodes: readonly NodeSeen[];
  readonly ranges: readonly RangeSeen[];
}

const PAGE = 500;

export async function seeCluster(admin: AdminClient): Promise<ClusterSeen> {
  const [{ nodes }, ranges] = await Promise.all([admin.nodes(), admin.ranges({ pageSize: PAGE }).toArray()]);
  const seen = ranges.map(({ id, leaderNode, replicas }) => ({
    id,
    leaderNode,
    replicas: replicas.map(({ nodeId, type }) => ({ nodeId, type })),
  }));
  return {
    ranges: seen,
    nodes: nodes.map(({ id, name, state, duty }) => ({
      ...{ id, name, state, duty },
      replicas: seen.filter((range) => range.replicas.some(({ nodeId }) => nodeId === id)).length,
      leaders: seen.filter(({ leaderNode }) => leaderNode === id).length,
    })),
  };
}

/**
 * Ranges without a leader on a node that is up, or whose voters are not the wanted number, or not all on nodes that are
 * up, or not their only replicas.
 */
export function brokenRanges({ nodes, ranges }: ClusterSeen, replicas: number): readonly RangeSeen[] {
  const up = new Set(nodes.filter(({ state }) => state === 'up').map(({ id }) => id));
  return ranges.filter((range) => {
    const live = range.replicas.filter(({ nodeId, type }) => type === 'voter' && up.has(nodeId));
    return live.length !== replicas || range.replicas.length !== replicas || !up.has(range.leaderNode);
  });
}

export interface Spread {
  readonly replicas: readonly number[];
  readonly leaders: readonly number[];
}

/** The nodes that are up and in service. */
export function spreadOf({ nodes }: ClusterSeen): Spread {
  const serving = nodes.filter(({ state, duty }) => state === 'up' && duty === 'serving');
  return { replicas: serving.map(({ replicas }) => replicas), leaders: serving.map(({ leaders }) => leaders) };
}

/** Whether the largest and the smallest differ by at most a tenth of the mean, or by one. */
export function isEven(counts: readonly number[]): boolean {
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return Math.max(...counts) - Math.min(...counts) <= Math.max(1, mean / 10);
}

export function isBalanced(seen: ClusterSeen): boolean {
  const { replicas, leaders } = spreadOf(seen);
  return isEven(replicas) && isEven(leaders);
}

export function spreadText(spread: Spread): string {
  return `replicas ${spread.replicas.join(' ')}, leaders ${spread.leaders.join(' ')}`;
}
