/**
 * Balances the number of leaders per node. While a path leads from a node with more leaders to one with fewer, the
 * counts can be improved; when there is none, they are as even as the placement of replicas allows.
 */
import type { SchedulingView } from '../view.ts';
import { LeaderGraph, type Path, plansOf } from './leader-graph.ts';
import { LEADERS } from './metrics.ts';
import { meanOf, type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';
import { BALANCED, spreadText } from './spread-text.ts';

export const leaderCount: Scheduler = {
  name: 'leader-count',
  settings: ['countTolerancePercent'],
  desc: 'balances the number of leaders per node',
  propose: (view) => new LeaderCountRound(view).propose(),
};

class LeaderCountRound {
  readonly #counts: Map<number, number>;
  readonly #gap: number;
  readonly #graph: LeaderGraph;
  /** Nodes from which no node with few enough leaders can be reached. */
  readonly #closed = new Set<number>();

  constructor(view: SchedulingView) {
    const nodes = view.balancedNodes().map(({ info }) => info.nodeId);
    this.#counts = new Map(nodes.map((nodeId) => [nodeId, view.expected(nodeId).leaders]));
    this.#gap = LEADERS.gap(meanOf(this.#counts.values()), view.settings);
    this.#graph = new LeaderGraph(view, nodes);
  }

  *propose(): Proposals {
    let refusals = 0;
    for (;;) {
      const least = Math.min(...this.#counts.values());
      const source = this.#fullest();
      const most = source === undefined ? least : this.#count(source);
      if (source === undefined || most - least < this.#gap) return this.#summary();
      const { path, reached } = this.#graph.path(source, (nodeId) => {
        const count = this.#count(nodeId);
        return most - count >= this.#gap ? count : undefined;
      });
      if (path === undefined) {
        // Nodes reachable from here cannot reach one either, and nodes with fewer leaders need a target with still
        // fewer.
        for (const nodeId of reached) this.#closed.add(nodeId);
        continue;
      }
      this.#graph.use(path);
      if (yield plansOf(path, `leaders are spread unevenly, ${least} to ${most} per node`)) this.#move(path);
      else if (++refusals === REFUSALS_MAX) return 'more transfers will follow: limits are reached';
    }
  }

  /** The node with the most leaders, among those that may still reach another. */
  #fullest(): number | undefined {
    let [fullest, most] = [undefined as number | undefined, Number.NEGATIVE_INFINITY];
    for (const [nodeId, count] of this.#counts) {
      if (count > most && !this.#closed.has(nodeId)) [fullest, most] = [nodeId, count];
    }
    return fullest;
  }

  #move(path: Path): void {
    for (const { from, to } of path) {
      this.#counts.set(from, this.#count(from) - 1);
      this.#counts.set(to, this.#count(to) + 1);
    }
  }

  #count(nodeId: number): number {
    return this.#counts.get(nodeId) ?? 0;
  }

  #summary(): string {
    const counts = [...this.#counts.values()];
    if (counts.length < 2) return 'fewer than two nodes are eligible';
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    const spread = spreadText(least, most, 'leaders');
    return most - least < this.#gap ? `${spread}; ${BALANCED}` : `${spread}; no transfer improves the balance now`;
  }
}
