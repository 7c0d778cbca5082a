/** The inputs of checkers and schedulers: the cluster, the settings, and the running operators. */
import { formatDurationMs } from '@remora/base';
import {
  type ClusterView,
  isLive,
  type NodeTotals,
  type NodeView,
  type RangeInfo,
  voterNodes,
} from './cluster-model.ts';
import { costOfJoining, isolationCost } from './labels.ts';
import { mayReceive } from './limits.ts';
import type { OperatorKind } from './operator.ts';
import type { InfluenceSum } from './operator-influence.ts';
import type { RangeMemory } from './range-memory.ts';
import type { Settings } from './settings.ts';
import { notServing } from './step.ts';

/** The running operators, and facts remembered about earlier ones. */
export interface InFlight {
  readonly influenceSum: InfluenceSum;
  readonly memory: RangeMemory;
  expected(nodeId: number): NodeTotals;
  isBusy(rangeId: number): boolean;
}

export class SchedulingView {
  readonly model: ClusterView;
  readonly settings: Settings;
  readonly nowMs: number;
  readonly #inFlight: InFlight;
  readonly #bestIsolation = new Map<number, number>();

  constructor(inFlight: InFlight, from: { model: ClusterView; settings: Settings; nowMs: number }) {
    this.model = from.model;
    this.settings = from.settings;
    this.nowMs = from.nowMs;
    this.#inFlight = inFlight;
  }

  /** What a node will carry when all running operators are done. */
  expected(nodeId: number): NodeTotals {
    return this.#inFlight.expected(nodeId);
  }

  mayReceive(nodeId: number, kind: OperatorKind): boolean {
    return mayReceive(this.#inFlight.influenceSum, nodeId, kind, this.settings);
  }

  /** Whether an attempt to create a replica of the range there failed lately. */
  isAvoided(rangeId: number, nodeId: number): boolean {
    return this.#inFlight.memory.isAvoided(rangeId, nodeId, this.nowMs, this.settings);
  }

  isBusy(rangeId: number): boolean {
    return this.#inFlight.isBusy(rangeId);
  }

  /** The reason, for people, why balancing may not move a replica of a range; undefined if it may. */
  notMovable(range: RangeInfo): string | undefined {
    return this.notTransferable(range) ?? this.notWhole(range);
  }

  /** The reason why balancing may not move the leader of a range. */
  notTransferable(range: RangeInfo): string | undefined {
    const { rangeId } = range.descriptor;
    const restMs = this.#inFlight.memory.restsUntil(rangeId, this.settings) - this.nowMs;
    return (
      this.notChangeable(range) ??
      (restMs > 0 ? `it was moved recently and is left alone for ${restText(restMs)}` : undefined)
    );
  }

  /** The reason why nothing may change a range now. */
  notChangeable(range: RangeInfo): string | undefined {
    if (this.isBusy(range.descriptor.rangeId)) return 'an operator is running';
    if (range.leader === undefined) return 'it has no leader';
    return range.joint || range.changePending ? 'its membership is changing' : undefined;
  }

  /** What a range lacks to be complete. */
  notWhole(range: RangeInfo): string | undefined {
    const { replicas } = range.descriptor;
    if (replicas.length !== voterNodes(range).length) return 'it has a learner';
    if (replicas.length !== this.settings.replicas) return 'it has too many or too few replicas';
    const silent = replicas.find(({ nodeId }) => !isLive(this.model, range, nodeId));
    return silent === undefined ? undefined : `its replica on node ${silent.nodeId} is silent`;
  }

  /** Nodes among which balancing spreads the load. */
  balancedNodes(): readonly NodeView[] {
    return [...this.model.nodes()].filter(
      ({ info }) =>
        notServing(this.model, info.nodeId) === undefined &&
        this.nowMs - info.livenessSinceMs >= this.settings.nodeSettleMs,
    );
  }

  /**
   * The least isolation cost of this many replicas, placed one by one. While fewer nodes could take them, any placement
   * counts as good as possible.
   */
  bestIsolation(replicas: number): number {
    const known = this.#bestIsolation.get(replicas);
    if (known !== undefined) return known;
    const { model } = this;
    const { isolationLevels } = this.settings;
    const left = new Set([...model.nodes()].map(({ info }) => info.nodeId).filter((id) => !notServing(model, id)));
    const chosen: number[] = [];
    while (chosen.length < replicas && left.size > 0) {
      const next = cheapest(left, (id) => costOfJoining(model, id, chosen, isolationLevels));
      chosen.push(next);
      left.delete(next);
    }
    const enough = chosen.length === replicas;
    const cost = enough ? isolationCost(model, chosen, isolationLevels) : Number.POSITIVE_INFINITY;
    this.#bestIsolation.set(replicas, cost);
    return cost;
  }
}

function restText(restMs: number): string {
  return formatDurationMs(Math.ceil(restMs / 1_000) * 1_000);
}

function cheapest(ids: Iterable<number>, costOf: (id: number) => number): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const id of ids) {
    const cost = costOf(id);
    if (cost < least) [best, least] = [id, cost];
  }
  return best;
}
