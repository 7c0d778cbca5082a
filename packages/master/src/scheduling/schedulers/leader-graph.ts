/**
 * The possible transfers of leaders: nodes, and for each pair of nodes the ranges that the first leads and the second
 * could lead.
 *
 * Leadership can move only to a node that has a voter of the range, so two nodes may have no range to transfer
 * directly. Then the transfer takes a path: one range moves to an intermediate node, and one range of that node moves
 * to the next. The intermediate nodes lead as many ranges as before.
 */
import type { RangeInfo } from '../cluster-model.ts';
import type { Plan } from '../operator.ts';
import { planFor } from '../plans.ts';
import { refusesLeader } from '../step.ts';
import type { SchedulingView } from '../view.ts';
import { LEADER_LOAD } from './metrics.ts';

export interface Hop {
  readonly range: RangeInfo;
  readonly from: number;
  readonly to: number;
}

export type Path = readonly Hop[];

export class LeaderGraph {
  readonly #view: SchedulingView;
  readonly #nodes: ReadonlySet<number>;
  /** By leading node, then by possible leader: ranges, the least used first. Built on demand. */
  readonly #edges = new Map<number, ReadonlyMap<number, readonly RangeInfo[]>>();
  readonly #used = new Set<number>();

  constructor(view: SchedulingView, nodes: Iterable<number>) {
    this.#view = view;
    this.#nodes = new Set(nodes);
  }

  /** The ranges of `from` that each other node could lead, including used ones. */
  edges(from: number): ReadonlyMap<number, readonly RangeInfo[]> {
    const known = this.#edges.get(from);
    if (known !== undefined) return known;
    const edges = new Map<number, RangeInfo[]>();
    for (const rangeId of this.#view.model.node(from)?.leads ?? []) {
      const range = this.#view.model.range(rangeId);
      if (range === undefined || this.#view.notTransferable(range) !== undefined) continue;
      for (const { nodeId: to } of range.descriptor.replicas) {
        if (to === from || !this.#nodes.has(to) || refusesLeader(range, to, this.#view) !== undefined) continue;
        const ranges = edges.get(to);
        if (ranges === undefined) edges.set(to, [range]);
        else ranges.push(range);
      }
    }
    for (const ranges of edges.values()) ranges.sort((a, b) => LEADER_LOAD.of(a) - LEADER_LOAD.of(b));
    this.#edges.set(from, edges);
    return edges;
  }

  /** Records the use of a path: no range is proposed twice in a round. */
  use(path: Path): void {
    for (const { range } of path) this.#used.add(range.descriptor.rangeId);
  }

  isUsed(range: RangeInfo): boolean {
    return this.#used.has(range.descriptor.rangeId);
  }

  /**
   * Returns a shortest path to a node for which `score` is defined; among nodes at that distance, to the one with the
   * least score. The path takes the least used ranges, and not `except`. If there is none, `reached` contains all
   * reachable nodes.
   */
  path(
    source: number,
    score: (nodeId: number) => number | undefined,
    except?: RangeInfo,
  ): { readonly path: Path | undefined; readonly reached: Iterable<number> } {
    const hops = new Map<number, Hop | undefined>([[source, undefined]]);
    let level = [source];
    while (level.length > 0) {
      const next: number[] = [];
      let [best, least] = [undefined as number | undefined, Number.POSITIVE_INFINITY];
      for (const hop of level.flatMap((from) => this.#hops(from, except))) {
        if (hops.has(hop.to)) continue;
        hops.set(hop.to, hop);
        next.push(hop.to);
        const own = score(hop.to);
        if (own !== undefined && own < least) [best, least] = [hop.to, own];
      }
      if (best !== undefined) return { path: pathTo(best, hops), reached: hops.keys() };
      level = next;
    }
    return { path: undefined, reached: hops.keys() };
  }

  #hops(from: number, except: RangeInfo | undefined): readonly Hop[] {
    const found: Hop[] = [];
    for (const [to, ranges] of this.edges(from)) {
      const range = ranges.find((candidate) => candidate !== except && !this.isUsed(candidate));
      if (range !== undefined) found.push({ range, from, to });
    }
    return found;
  }
}

function pathTo(target: number, hops: ReadonlyMap<number, Hop | undefined>): Path {
  const path: Hop[] = [];
  for (let hop = hops.get(target); hop !== undefined; hop = hops.get(hop.from)) path.unshift(hop);
  return path;
}

/** One transfer for each hop. */
export function plansOf(path: Path, reason: string): readonly Plan[] {
  return path.map(({ range, from, to }) =>
    planFor(range, {
      kind: 'balanceLeaders',
      steps: [{ type: 'transferLeader', nodeId: to }],
      reason: `${reason}: one moves from node ${from} to node ${to}`,
    }),
  );
}
