/** A dry run of the schedulers: it admits plans as the controller does, but starts none. */
import { addTotals, type ClusterView, NO_TOTALS, type NodeTotals } from './cluster-model.ts';
import type { Controller } from './controller.ts';
import { limitReached, respectsRest } from './limits.ts';
import { type Plan, rangesOf } from './operator.ts';
import { InfluenceSum, influenceOf } from './operator-influence.ts';
import type { RangeMemory } from './range-memory.ts';
import type { Settings } from './settings.ts';
import type { InFlight } from './view.ts';

interface RehearsalFrom {
  readonly model: ClusterView;
  readonly settings: Settings;
  readonly nowMs: number;
}

export class Rehearsal implements InFlight {
  readonly influenceSum = new InfluenceSum();
  readonly memory: RangeMemory;
  readonly #from: RehearsalFrom;
  readonly #busy: Set<number>;
  readonly #plans: Plan[] = [];

  constructor(controller: Controller, from: RehearsalFrom) {
    const { rangeIds, influences } = controller.inFlight();
    this.#from = from;
    this.#busy = new Set(rangeIds);
    this.memory = controller.memory;
    for (const influence of influences) this.influenceSum.add(influence);
  }

  /** The plans that would have begun, in order. */
  get plans(): readonly Plan[] {
    return this.#plans;
  }

  /** Admits all of them or none, as the controller does with proposals of schedulers. */
  admit(plans: readonly Plan[]): boolean {
    const { model, settings } = this.#from;
    if (plans.some((plan) => this.#isRefused(plan))) return false;
    const influences = plans.flatMap(({ kind, steps, rangeId }) => {
      const range = model.range(rangeId);
      return range === undefined ? [] : [influenceOf(kind, steps, range)];
    });
    if (limitReached(this.influenceSum, influences, settings) !== undefined) return false;
    for (const influence of influences) this.influenceSum.add(influence);
    for (const rangeId of plans.flatMap(rangesOf)) this.#busy.add(rangeId);
    this.#plans.push(...plans);
    return true;
  }

  expected(nodeId: number): NodeTotals {
    return addTotals(this.#from.model.node(nodeId)?.totals ?? NO_TOTALS, this.influenceSum.changes(nodeId));
  }

  isBusy(rangeId: number): boolean {
    return this.#busy.has(rangeId);
  }

  /** Schedulers do not take ranges from each other. */
  #isRefused(plan: Plan): boolean {
    const { rangeId, kind } = plan;
    const { settings, nowMs } = this.#from;
    return (
      rangesOf(plan).some((id) => this.isBusy(id)) ||
      (respectsRest(kind) && this.memory.restsUntil(rangeId, settings) > nowMs)
    );
  }
}
