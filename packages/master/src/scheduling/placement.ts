/**
 * Chooses the node for a new replica. Nodes that cannot receive it are reported with their reasons. Of the others, only
 * those that keep the replicas furthest apart are considered, and among these the one that will have the fewest
 * replicas is chosen.
 */
import { type RangeInfo, replicaOn } from './cluster-model.ts';
import { costOfJoining } from './labels.ts';
import { isBalancing } from './limits.ts';
import type { OperatorKind } from './operator.ts';
import { notServing } from './step.ts';
import type { SchedulingView } from './view.ts';

export interface Wanted {
  readonly kind: OperatorKind;
  /** Nodes of the replicas that stay: the new one must be isolated from them. */
  readonly beside: readonly number[];
  /** Only nodes with a lower isolation cost beside the others. */
  readonly costBelow?: number;
}

export type Placement = { readonly nodeId: number; readonly cost: number } | { readonly refused: string };

/** Returns the best node for a replica of a range, or why there is none. */
export function place(view: SchedulingView, range: RangeInfo, wanted: Wanted): Placement {
  const refusals = new Refusals();
  let candidates: number[] = [];
  let cost = wanted.costBelow ?? Number.POSITIVE_INFINITY;
  for (const { info } of view.model.nodes()) {
    const unfit = unfitFor(view, range, info.nodeId, wanted.kind);
    const own = costOfJoining(view.model, info.nodeId, wanted.beside, view.settings.isolationLevels);
    if (unfit !== undefined) refusals.add(unfit, info.nodeId);
    else if (wanted.costBelow !== undefined && own >= wanted.costBelow) {
      refusals.add('would not place the replicas further apart', info.nodeId);
    } else if (own < cost) [candidates, cost] = [[info.nodeId], own];
    else if (own === cost) candidates.push(info.nodeId);
  }
  // While the best nodes are busy, no worse place is used: that replica would have to move again.
  const free = candidates.filter((nodeId) => view.mayReceive(nodeId, wanted.kind));
  const nodeId = leastLoaded(view, free);
  if (nodeId !== undefined) return { nodeId, cost };
  for (const busy of candidates) refusals.add('is receiving other replicas', busy);
  return { refused: refusals.describe() };
}

/** The reason why a node cannot take a replica of a range, as in "node 4 is draining"; undefined if it can. */
export function unfitFor(
  view: SchedulingView,
  range: RangeInfo,
  nodeId: number,
  kind: OperatorKind,
): string | undefined {
  if (replicaOn(range, nodeId) !== undefined) return 'already has a replica';
  const unfit = notServing(view.model, nodeId);
  if (unfit !== undefined) return unfit;
  if (view.isAvoided(range.descriptor.rangeId, nodeId)) return 'recently failed to receive it';
  const { settings } = view;
  const freePercent = isBalancing(kind) ? settings.targetSpacePercent : settings.lowSpacePercent;
  return hasSpace(view, nodeId, range.bytes, freePercent) ? undefined : 'has too little free space';
}

/** Whether enough of a node's disk stays free after the replicas on their way to it, and `bytes` more. */
export function hasSpace(view: SchedulingView, nodeId: number, bytes: number, freePercent: number): boolean {
  const node = view.model.node(nodeId);
  if (node === undefined) return false;
  const inFlight = Math.max(0, view.expected(nodeId).bytes - node.totals.bytes);
  const { capacityBytes, availableBytes } = node.info;
  return availableBytes - inFlight - bytes >= (capacityBytes * freePercent) / 100;
}

function leastLoaded(view: SchedulingView, nodeIds: readonly number[]): number | undefined {
  const load = (nodeId: number): readonly [number, number, number] => {
    const { replicas, bytes } = view.expected(nodeId);
    return [replicas, bytes, nodeId];
  };
  const sorted = nodeIds.map(load).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  return sorted[0]?.[2];
}

/** Reasons, each with its nodes. */
class Refusals {
  readonly #nodes = new Map<string, number[]>();

  add(reason: string, nodeId: number): void {
    const nodes = this.#nodes.get(reason) ?? [];
    nodes.push(nodeId);
    this.#nodes.set(reason, nodes);
  }

  describe(): string {
    if (this.#nodes.size === 0) return 'no node stores data';
    const parts = [...this.#nodes].map(([reason, nodes]) => `${nodeList(nodes)} ${reason}`);
    return `no node can take a replica: ${parts.join('; ')}`;
  }
}

const LISTED_MAX = 5;

/** "node 4", or "nodes 4, 7, 9 and 12 more": the subject of a statement. */
function nodeList(nodes: readonly number[]): string {
  if (nodes.length === 1) return `node ${nodes[0]}`;
  const more = nodes.length > LISTED_MAX ? ` and ${nodes.length - LISTED_MAX} more` : '';
  return `each of nodes ${nodes.slice(0, LISTED_MAX).join(', ')}${more}`;
}
