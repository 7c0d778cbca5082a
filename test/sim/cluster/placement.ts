/** The places of a cluster's ranges, and the expected places of their replicas and leaders after all faults. */
import { compareBytes } from '@remora/base';
import { coverageFaults, type Master } from '@remora/master';
import type { RangeDescriptor } from '@remora/protocol';
import { MASTER_GROUP } from '@remora/raft';
import type { SimNode } from './node.ts';
import type { World } from './world.ts';

export class Placement {
  readonly #world: Pick<World, 'leaderOf' | 'nodes'>;

  constructor(world: Pick<World, 'leaderOf' | 'nodes'>) {
    this.#world = world;
  }

  get masterNode(): SimNode | undefined {
    return this.#world.leaderOf(MASTER_GROUP);
  }

  /** The masters' leader. */
  get master(): Master | undefined {
    return this.masterNode?.roles?.master;
  }

  /** As the masters know them, in the order of their keys. */
  get ranges(): readonly RangeDescriptor[] {
    return [...(this.master?.state.ranges() ?? [])].sort((a, b) => compareBytes(a.start, b.start));
  }

  /** The number of ranges with a replica on each of these nodes. */
  replicaCounts(nodeIds: Iterable<number>): ReadonlyMap<number, number> {
    return this.#counts(nodeIds, ({ replicas }) => replicas.map(({ nodeId }) => nodeId));
  }

  leaderCounts(nodeIds: Iterable<number>): ReadonlyMap<number, number> {
    const leaders = new Map(this.master?.view().leaders);
    return this.#counts(nodeIds, ({ rangeId }) => [leaders.get(rangeId) ?? 0]);
  }

  #counts(nodeIds: Iterable<number>, nodesOf: (range: RangeDescriptor) => readonly number[]) {
    const counts = new Map([...nodeIds].map((id) => [id, 0]));
    for (const range of this.ranges) for (const id of nodesOf(range)) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }

  /** Why ranges do not have exactly this many voters on these nodes. */
  unrepaired(voters: number, nodeIds: ReadonlySet<number>): string {
    for (const { rangeId, replicas } of this.ranges) {
      const wrong = replicas.find(({ nodeId }) => !nodeIds.has(nodeId));
      if (wrong !== undefined) return `range ${rangeId} has a replica on node ${wrong.nodeId}`;
      if (replicas.length !== voters) return `range ${rangeId} has ${replicas.length} replicas`;
      const learner = replicas.find(({ type }) => type === 'learner');
      if (learner !== undefined) return `range ${rangeId} has a learner on node ${learner.nodeId}`;
    }
    return '';
  }

  /** Why replicas and leaders are not spread over these nodes as evenly as possible. */
  unbalanced(nodeIds: Iterable<number>): string {
    const ids = [...nodeIds];
    const replicas = spread(this.replicaCounts(ids));
    const leaders = spread(this.leaderCounts(ids));
    if (replicas.range > 1) return `replicas: ${replicas.text}`;
    return leaders.range > 1 ? `leaders: ${leaders.text}` : '';
  }

  /** Why the ranges do not have each key exactly once, or nodes do not hold what they should. */
  misplaced(): string {
    const { ranges } = this;
    const [fault] = coverageFaults(ranges);
    if (fault !== undefined) return `there is a ${fault.type} beside ranges ${fault.rangeIds.join(', ')}`;
    for (const node of this.#world.nodes) {
      const { nodeId, up } = node;
      if (!up || nodeId === undefined) continue;
      const due = ranges.flatMap(({ rangeId, replicas }) =>
        replicas.some((r) => r.nodeId === nodeId) ? [rangeId] : [],
      );
      const [held, wanted] = [heldBy(node), due].map((ids) => [...ids].sort((a, b) => a - b).join(' '));
      if (held !== wanted) return `node ${nodeId} holds ${held}, not ${wanted}`;
    }
    return '';
  }
}

/** Replicas that run on a node, independently of the masters' knowledge. */
export function heldBy({ roles }: SimNode): readonly number[] {
  return [...(roles?.store?.replicas() ?? [])].map(({ rangeId }) => rangeId);
}

function spread(counts: ReadonlyMap<number, number>): { readonly range: number; readonly text: string } {
  const values = [...counts.values()];
  const text = [...counts].map(([nodeId, count]) => `${count} on node ${nodeId}`).join(', ');
  return { range: Math.max(...values) - Math.min(...values), text };
}
