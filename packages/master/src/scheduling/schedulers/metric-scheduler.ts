/**
 * Balances a metric by moving replicas from a node with a high value to one with a low value: single replicas, or,
 * where that would unbalance a metric with priority (B2), one replica in exchange for another. The exchange that comes
 * closest to half the difference is proposed.
 *
 * B3. Between two nodes with a difference D, shifting v leaves |D - 2v|. Only v from `gain` to D - `gain` is proposed,
 *     so each proposal reduces the sum of squares (B1).
 */
import { type NodeView, type RangeInfo, replicaOn } from '../cluster-model.ts';
import { costOfJoining } from '../labels.ts';
import type { Plan } from '../operator.ts';
import { hasSpace, unfitFor } from '../placement.ts';
import { moveSteps, planFor } from '../plans.ts';
import type { SettingName } from '../settings.ts';
import type { SchedulingView } from '../view.ts';
import type { Metric } from './metrics.ts';
import { meanOf, type Proposals, REFUSALS_MAX, type Scheduler } from './scheduler.ts';
import { BALANCED, spreadText } from './spread-text.ts';

export interface Balance {
  readonly name: string;
  readonly desc: string;
  readonly settings: readonly SettingName[];
  readonly metric: Metric;
  /** Metrics with priority. */
  readonly keep: readonly Metric[];
  /** Among moves that are equally good by the metric, those that balance these metrics are preferred. */
  readonly prefer: readonly Metric[];
}

/** The number of pairs of nodes that one round examines, to bound its time. The next round continues behind them. */
const PAIRS_PER_ROUND = 64;

export class MetricScheduler implements Scheduler {
  readonly #balance: Balance;
  #skipPairs = 0;

  constructor(balance: Balance) {
    this.#balance = balance;
  }

  get name(): string {
    return this.#balance.name;
  }

  get desc(): string {
    return this.#balance.desc;
  }

  get settings(): readonly SettingName[] {
    return this.#balance.settings;
  }

  *propose(view: SchedulingView): Proposals {
    const round = new Round(this.#balance, view);
    let refusals = 0;
    for (;;) {
      const search = round.search(this.#skipPairs);
      if (search.exchange === undefined) {
        this.#skipPairs = search.exhausted ? 0 : this.#skipPairs + search.pairs;
        return round.summary(search.exhausted);
      }
      const admitted = yield round.plansFor(search.exchange);
      round.use(search.exchange, admitted);
      if (admitted) this.#skipPairs = 0;
      else if (++refusals === REFUSALS_MAX) return 'more moves will follow: limits are reached';
    }
  }
}

interface Exchange {
  readonly from: number;
  readonly to: number;
  readonly there: RangeInfo;
  readonly back: RangeInfo | undefined;
}

interface Search {
  readonly exchange: Exchange | undefined;
  readonly pairs: number;
  /** No pair is left. */
  readonly exhausted: boolean;
}

/** The number of candidates per side for exchanges. */
const SWAP_CANDIDATES = 32;

class Round {
  readonly #balance: Balance;
  readonly #view: SchedulingView;
  readonly #metrics: readonly Metric[];
  readonly #sources: readonly NodeView[];
  readonly #targets: readonly NodeView[];
  /** By metric, then by node: the expected values. */
  readonly #values: ReadonlyMap<Metric, Map<number, number>>;
  readonly #gaps: ReadonlyMap<Metric, number>;
  /** The extremes of `#values`, while they are valid. */
  readonly #known = new Map<Metric, { readonly least: number; readonly most: number }>();
  readonly #used = new Set<number>();

  constructor(balance: Balance, view: SchedulingView) {
    this.#balance = balance;
    this.#view = view;
    this.#metrics = [balance.metric, ...balance.keep, ...balance.prefer];
    this.#sources = view.balancedNodes();
    const { targetSpacePercent } = view.settings;
    this.#targets = this.#sources.filter(({ info }) => hasSpace(view, info.nodeId, 0, targetSpacePercent));
    const ids = this.#sources.map(({ info }) => info.nodeId);
    const values = (metric: Metric) => new Map(ids.map((id) => [id, metric.total(view.expected(id))] as const));
    this.#values = new Map(this.#metrics.map((metric) => [metric, values(metric)]));
    this.#gaps = new Map(
      this.#metrics.map((metric) => [metric, metric.gap(meanOf(values(metric).values()), view.settings)]),
    );
  }

  /** The first pair of nodes with an exchange, those with the largest difference first. */
  search(skip: number): Search {
    const value = (node: NodeView): number => this.#value(this.#balance.metric, node.info.nodeId);
    const sources = [...this.#sources].sort((a, b) => value(b) - value(a));
    const targets = [...this.#targets].sort((a, b) => value(a) - value(b));
    let seen = 0;
    for (const source of sources) {
      for (const target of targets) {
        if (value(source) - value(target) < this.#gap(this.#balance.metric)) break;
        if (seen++ < skip) continue;
        if (seen - skip > PAIRS_PER_ROUND) return { exchange: undefined, pairs: PAIRS_PER_ROUND, exhausted: false };
        const exchange = this.#exchange(source, target);
        if (exchange !== undefined) return { exchange, pairs: seen - skip, exhausted: false };
      }
    }
    return { exchange: undefined, pairs: Math.max(0, seen - skip), exhausted: true };
  }

  plansFor({ from, to, there, back }: Exchange): readonly Plan[] {
    const { metric } = this.#balance;
    const amount = (nodeId: number): string => String(Math.round(this.#value(metric, nodeId)));
    const reason = `${metric.what} are spread unevenly: ${amount(from)} on node ${from}, ${amount(to)} on node ${to}`;
    const plans = [this.#plan(there, { from, to }, reason)];
    if (back !== undefined) plans.push(this.#plan(back, { from: to, to: from }, reason));
    return plans;
  }

  /** Removes a proposed exchange from the round, and counts it if it was admitted. */
  use({ from, to, there, back }: Exchange, admitted: boolean): void {
    this.#used.add(there.descriptor.rangeId);
    if (back !== undefined) this.#used.add(back.descriptor.rangeId);
    if (!admitted) return;
    this.#known.clear();
    for (const [metric, values] of this.#values) {
      const shift = metric.of(there) - (back === undefined ? 0 : metric.of(back));
      values.set(from, this.#value(metric, from) - shift);
      values.set(to, this.#value(metric, to) + shift);
    }
  }

  summary(exhausted: boolean): string {
    const { metric } = this.#balance;
    if (this.#sources.length < 2) return 'fewer than two nodes are eligible';
    const { least, most } = this.#extremes(metric);
    const spread = spreadText(least, most, metric.what);
    if (most - least < this.#gap(metric)) return `${spread}; ${BALANCED}`;
    return exhausted ? `${spread}; no move improves the balance now` : `${spread}; still searching for a move`;
  }

  #plan(range: RangeInfo, move: { readonly from: number; readonly to: number }, reason: string): Plan {
    return planFor(range, { kind: 'balanceReplicas', steps: moveSteps(this.#view, range, move), reason });
  }

  #exchange(source: NodeView, target: NodeView): Exchange | undefined {
    const pair = { from: source.info.nodeId, to: target.info.nodeId };
    const { metric, keep } = this.#balance;
    const difference = this.#value(metric, pair.from) - this.#value(metric, pair.to);
    const gain = metric.gain(this.#gap(metric));
    const there = this.#movable(source, pair, { min: gain, max: Number.POSITIVE_INFINITY });
    const single = this.#bestSingle(there, pair);
    if (single !== undefined || there.length === 0 || keep.length === 0) return single;
    // Only amounts that shift `gain` to `difference - gain` together with one of those (B3).
    const amounts = there.map(metric.of);
    const min = Math.min(...amounts) - difference + gain;
    const back = this.#movable(target, { from: pair.to, to: pair.from }, { min, max: Math.max(...amounts) - gain });
    return this.#bestSwap(there, back, pair);
  }

  #bestSingle(candidates: readonly RangeInfo[], pair: { from: number; to: number }): Exchange | undefined {
    let [best, bestScore] = [undefined as RangeInfo | undefined, Number.POSITIVE_INFINITY];
    for (const range of candidates) {
      const score = this.#score(this.#balance.metric.of(range), pair);
      if (score === undefined) continue;
      // Fractions below 1 decide between moves that are equally good.
      const total = score + 0.5 * this.#distaste(range, pair);
      if (total < bestScore && this.#keepsBands(range, undefined, pair)) [best, bestScore] = [range, total];
    }
    return best === undefined ? undefined : { ...pair, there: best, back: undefined };
  }

  #bestSwap(
    there: readonly RangeInfo[],
    back: readonly RangeInfo[],
    pair: { from: number; to: number },
  ): Exchange | undefined {
    const { of } = this.#balance.metric;
    const large = [...there].sort((a, b) => of(b) - of(a)).slice(0, SWAP_CANDIDATES);
    const small = [...back].sort((a, b) => of(a) - of(b)).slice(0, SWAP_CANDIDATES);
    let [best, bestScore] = [undefined as Exchange | undefined, Number.POSITIVE_INFINITY];
    for (const go of large) {
      for (const come of small) {
        const score = this.#score(of(go) - of(come), pair);
        if (score === undefined || score >= bestScore || !this.#keepsBands(go, come, pair)) continue;
        [best, bestScore] = [{ ...pair, there: go, back: come }, score];
      }
    }
    return best;
  }

  /** The distance of a shift from half the difference; undefined if it is not worthwhile (B3). */
  #score(shift: number, { from, to }: { from: number; to: number }): number | undefined {
    const { metric } = this.#balance;
    const difference = this.#value(metric, from) - this.#value(metric, to);
    const gain = metric.gain(this.#gap(metric));
    return shift >= gain && shift <= difference - gain ? Math.abs(shift - difference / 2) : undefined;
  }

  /** From 0 to 1: higher if a leader would have to be transferred first, or if it unbalances the next metrics. */
  #distaste(range: RangeInfo, { from, to }: { from: number; to: number }): number {
    const offs = this.#balance.prefer.map((metric) => {
      const half = (this.#value(metric, from) - this.#value(metric, to)) / 2;
      const off = Math.abs(metric.of(range) - half);
      return off / (off + Math.abs(half) + 1);
    });
    return (range.leader === from ? 0.25 : 0) + 0.75 * meanOf(offs);
  }

  /** B2. */
  #keepsBands(there: RangeInfo, back: RangeInfo | undefined, { from, to }: { from: number; to: number }): boolean {
    return this.#balance.keep.every((metric) => {
      const shift = metric.of(there) - (back === undefined ? 0 : metric.of(back));
      if (shift === 0) return true;
      const before = this.#value(metric, from) - this.#value(metric, to);
      if (Math.abs(before - 2 * shift) <= Math.abs(before)) return true;
      const after = [this.#value(metric, from) - shift, this.#value(metric, to) + shift];
      const { least, most } = this.#extremes(metric);
      return Math.max(most, ...after) - Math.min(least, ...after) < this.#gap(metric);
    });
  }

  /**
   * Ranges with such an amount of the metric that may move from one node to the other. The amount is checked first,
   * because that is cheap.
   */
  #movable(
    source: NodeView,
    { from, to }: { from: number; to: number },
    { min, max }: { min: number; max: number },
  ): readonly RangeInfo[] {
    const { model } = this.#view;
    const { metric } = this.#balance;
    const found: RangeInfo[] = [];
    for (const rangeId of source.ranges) {
      const range = model.range(rangeId);
      if (range === undefined || metric.of(range) < min || metric.of(range) > max) continue;
      if (this.#used.has(rangeId) || replicaOn(range, to) !== undefined) continue;
      if (this.#view.notMovable(range) === undefined && this.#mayGo(range, from, to)) found.push(range);
    }
    return found;
  }

  #mayGo(range: RangeInfo, from: number, to: number): boolean {
    const { model, settings } = this.#view;
    if (unfitFor(this.#view, range, to, 'balanceReplicas') !== undefined) return false;
    const others = range.descriptor.replicas.map(({ nodeId }) => nodeId).filter((nodeId) => nodeId !== from);
    const { isolationLevels } = settings;
    return costOfJoining(model, to, others, isolationLevels) <= costOfJoining(model, from, others, isolationLevels);
  }

  #extremes(metric: Metric): { readonly least: number; readonly most: number } {
    const known = this.#known.get(metric);
    if (known !== undefined) return known;
    const values = [...(this.#values.get(metric)?.values() ?? [])];
    const extremes = { least: Math.min(...values), most: Math.max(...values) };
    this.#known.set(metric, extremes);
    return extremes;
  }

  #value(metric: Metric, nodeId: number): number {
    return this.#values.get(metric)?.get(nodeId) ?? 0;
  }

  #gap(metric: Metric): number {
    return this.#gaps.get(metric) ?? 0;
  }
}
