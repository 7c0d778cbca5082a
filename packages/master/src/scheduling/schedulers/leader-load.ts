/**
 * Balances the requests to the ranges that a node leads, by transferring hot ranges to nodes with little load. Where
 * that would unbalance the number of leaders (B2), leaders with little load move back, along a path if necessary.
 *
 * B4. A proposal reduces the sum of the squares of all loads at least by as much as the smallest worthwhile shift
 *     between its two nodes would. So if the loads do not change, the proposals terminate (B1).
 */
import type { RangeInfo } from '../cluster-model.ts';
import type { SchedulingView } from '../view.ts';
import { type Hop, LeaderGraph, type Path, plansOf } from './leader-graph.ts';
import { LEADER_LOAD, LEADERS } from './metrics.ts';
import { meanOf, type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';
import { BALANCED, spreadText } from './spread-text.ts';

export const leaderLoad: Scheduler = {
  name: 'leader-load',
  settings: ['loadTolerancePercent', 'loadGapMin'],
  desc: 'balances requests per node by transferring leaders',
  propose: (view) => new LeaderLoadRound(view).propose(),
};

/** The number of hot ranges tried per pair of nodes, those first that come closest to half the difference. */
const CANDIDATES = 16;

class LeaderLoadRound {
  readonly #loads: Map<number, number>;
  readonly #counts: Map<number, number>;
  readonly #gap: number;
  readonly #countGap: number;
  readonly #graph: LeaderGraph;

  constructor(view: SchedulingView) {
    const nodes = view.balancedNodes().map(({ info }) => info.nodeId);
    this.#loads = new Map(nodes.map((nodeId) => [nodeId, view.expected(nodeId).leaderLoad]));
    this.#counts = new Map(nodes.map((nodeId) => [nodeId, view.expected(nodeId).leaders]));
    this.#gap = LEADER_LOAD.gap(meanOf(this.#loads.values()), view.settings);
    this.#countGap = LEADERS.gap(meanOf(this.#counts.values()), view.settings);
    this.#graph = new LeaderGraph(view, nodes);
  }

  *propose(): Proposals {
    let refusals = 0;
    for (let path = this.#search(); path !== undefined; path = this.#search()) {
      this.#graph.use(path);
      if (yield plansOf(path, 'requests are spread unevenly')) this.#move(path);
      else if (++refusals === REFUSALS_MAX) return 'more transfers will follow: limits are reached';
    }
    return this.#summary();
  }

  #search(): Path | undefined {
    const least = Math.min(...this.#loads.values());
    const sources = [...this.#loads].sort((a, b) => b[1] - a[1]);
    for (const [from, load] of sources) {
      if (load - least < this.#gap) return undefined;
      const targets = [...this.#graph.edges(from)].sort(([a], [b]) => this.#load(a) - this.#load(b));
      for (const [to, ranges] of targets) {
        const path = load - this.#load(to) < this.#gap ? undefined : this.#handOver(from, to, ranges);
        if (path !== undefined) return path;
      }
    }
    return undefined;
  }

  #handOver(from: number, to: number, ranges: readonly RangeInfo[]): Path | undefined {
    const half = (this.#load(from) - this.#load(to)) / 2;
    const candidates = ranges
      .filter((range) => !this.#graph.isUsed(range))
      .map((range) => ({ range, off: Math.abs(LEADER_LOAD.of(range) - half) }))
      .sort((a, b) => a.off - b.off);
    for (const { range } of candidates.slice(0, CANDIDATES)) {
      const there: Hop = { range, from, to };
      if (!this.#isWorthIt([there], from, to)) continue; // the returning leaders have little load
      const path = this.#keepsCounts(from, to) ? [there] : this.#withReturn(there);
      if (path !== undefined && this.#isWorthIt(path, from, to)) return path;
    }
    return undefined;
  }

  /** B2. */
  #keepsCounts(from: number, to: number): boolean {
    const [fewer, more] = [this.#count(from) - 1, this.#count(to) + 1];
    if (more - fewer <= Math.abs(this.#count(from) - this.#count(to))) return true;
    const counts = [...this.#counts.values(), fewer, more];
    return Math.max(...counts) - Math.min(...counts) < this.#countGap;
  }

  #withReturn(there: Hop): Path | undefined {
    const isBack = (nodeId: number): number | undefined => (nodeId === there.from ? 0 : undefined);
    const { path } = this.#graph.path(there.to, isBack, there.range);
    return path === undefined ? undefined : [there, ...path];
  }

  /** B4. */
  #isWorthIt(path: Path, from: number, to: number): boolean {
    const loads = new Map<number, number>();
    for (const hop of path) {
      const load = LEADER_LOAD.of(hop.range);
      loads.set(hop.from, (loads.get(hop.from) ?? this.#load(hop.from)) - load);
      loads.set(hop.to, (loads.get(hop.to) ?? this.#load(hop.to)) + load);
    }
    let change = 0;
    for (const [nodeId, load] of loads) change += load ** 2 - this.#load(nodeId) ** 2;
    const gain = LEADER_LOAD.gain(this.#gap);
    return change <= -2 * gain * (this.#load(from) - this.#load(to) - gain);
  }

  #move(path: Path): void {
    for (const { range, from, to } of path) {
      const load = LEADER_LOAD.of(range);
      this.#loads.set(from, this.#load(from) - load);
      this.#loads.set(to, this.#load(to) + load);
      this.#counts.set(from, this.#count(from) - 1);
      this.#counts.set(to, this.#count(to) + 1);
    }
  }

  #load(nodeId: number): number {
    return this.#loads.get(nodeId) ?? 0;
  }

  #count(nodeId: number): number {
    return this.#counts.get(nodeId) ?? 0;
  }

  #summary(): string {
    const loads = [...this.#loads.values()];
    if (loads.length < 2) return 'fewer than two nodes are eligible';
    const [least, most] = [Math.min(...loads), Math.max(...loads)];
    const spread = spreadText(least, most, 'requests per second');
    return most - least < this.#gap ? `${spread}; ${BALANCED}` : `${spread}; no transfer improves the balance now`;
  }
}
