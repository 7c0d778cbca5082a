/** What running operators will still change on nodes, and the resources of nodes that they use. */
import {
  addTotals,
  leaderTotals,
  NO_TOTALS,
  type NodeTotals,
  type RangeInfo,
  replicaOn,
  replicaTotals,
} from './cluster-model.ts';
import type { OperatorKind } from './operator.ts';
import type { Step } from './step.ts';

export interface OperatorInfluence {
  readonly kind: OperatorKind;
  /** What the remaining steps add to nodes and take from them. */
  readonly changes: ReadonlyMap<number, NodeTotals>;
  /** Nodes that receive replicas, once per replica. */
  readonly receives: readonly number[];
  /** Nodes that send replicas. */
  readonly sends: readonly number[];
  /** Nodes that take over leadership. */
  readonly transfers: readonly number[];
}

export function influenceOf(kind: OperatorKind, steps: readonly Step[], range: RangeInfo): OperatorInfluence {
  const changes = new Map<number, NodeTotals>();
  const add = (nodeId: number, totals: NodeTotals, sign: 1 | -1): void => {
    changes.set(nodeId, addTotals(changes.get(nodeId) ?? NO_TOTALS, totals, sign));
  };
  const receives = new Set<number>();
  const transfers: number[] = [];
  let leader = range.leader;
  for (const step of steps) {
    if (step.type === 'addLearner') {
      add(step.nodeId, replicaTotals(range), 1);
      receives.add(step.nodeId);
    } else if (step.type === 'changeVoters') {
      for (const nodeId of step.remove) add(nodeId, replicaTotals(range), -1);
      for (const nodeId of step.promote) if (replicaOn(range, nodeId)?.type !== 'voter') receives.add(nodeId);
    } else if (step.type === 'transferLeader' && step.nodeId !== leader) {
      add(step.nodeId, leaderTotals(range), 1);
      if (leader !== undefined) add(leader, leaderTotals(range), -1);
      transfers.push(step.nodeId);
      leader = step.nodeId;
    }
  }
  const sends = range.leader === undefined ? [] : [...receives].map(() => range.leader ?? 0);
  return { kind, changes, receives: [...receives], sends, transfers };
}

/** The sum of the influences of all running operators. */
export class InfluenceSum {
  readonly #changes = new Map<number, NodeTotals>();
  readonly receives = new Counter<number>();
  readonly sends = new Counter<number>();
  readonly transfers = new Counter<number>();
  readonly kinds = new Counter<OperatorKind>();
  #size = 0;

  add(influence: OperatorInfluence): void {
    this.#apply(influence, 1);
  }

  remove(influence: OperatorInfluence): void {
    this.#apply(influence, -1);
  }

  get size(): number {
    return this.#size;
  }

  changes(nodeId: number): NodeTotals {
    return this.#changes.get(nodeId) ?? NO_TOTALS;
  }

  #apply(influence: OperatorInfluence, sign: 1 | -1): void {
    this.#size += sign;
    this.kinds.add(influence.kind, sign);
    for (const [nodeId, totals] of influence.changes) {
      this.#changes.set(nodeId, addTotals(this.changes(nodeId), totals, sign));
    }
    for (const nodeId of influence.receives) this.receives.add(nodeId, sign);
    for (const nodeId of influence.sends) this.sends.add(nodeId, sign);
    for (const nodeId of influence.transfers) this.transfers.add(nodeId, sign);
  }
}

/** Counts occurrences of keys. */
export class Counter<K> {
  readonly #counts = new Map<K, number>();

  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: K, by: number): void {
    const count = this.of(key) + by;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }

  entries(): IterableIterator<[K, number]> {
    return this.#counts.entries();
  }
}
