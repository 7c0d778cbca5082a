/** Plays through what the schedulers would begin now: it admits as the controller does, and begins nothing. */
import { addTotals, type ClusterView, NO_TOTALS, type NodeTotals } from './cluster-model.ts';
import type { Controller } from './controller.ts';
import { footprintOf, Ledger } from './footprint.ts';
import { limitReached, respectsRest } from './limits.ts';
import { type Plan, rangesOf } from './operator.ts';
import type { RangeMemory } from './range-memory.ts';
import type { Settings } from './settings.ts';
import type { UnderWay } from './view.ts';

interface RehearsalFrom {
  readonly model: ClusterView;
  readonly settings: Settings;
  readonly nowMs: number;
}

export class Rehearsal implements UnderWay {
  readonly ledger = new Ledger();
  readonly memory: RangeMemory;
  readonly #from: RehearsalFrom;
  readonly #busy: Set<number>;
  readonly #plans: Plan[] = [];

  constructor(controller: Controller, from: RehearsalFrom) {
    const { rangeIds, footprints } = controller.underWay();
    this.#from = from;
    this.#busy = new Set(rangeIds);
    this.memory = controller.memory;
    for (const footprint of footprints) this.ledger.add(footprint);
  }

  /** What would have been begun, in order. */
  get plans(): readonly Plan[] {
    return this.#plans;
  }

  /** All of them or none, as the controller does with what schedulers propose. */
  admit(plans: readonly Plan[]): boolean {
    const { model, settings } = this.#from;
    if (plans.some((plan) => this.#isRefused(plan))) return false;
    const footprints = plans.flatMap(({ kind, steps, rangeId }) => {
      const range = model.range(rangeId);
      return range === undefined ? [] : [footprintOf(kind, steps, range)];
    });
    if (limitReached(this.ledger, footprints, settings) !== undefined) return false;
    for (const footprint of footprints) this.ledger.add(footprint);
    for (const rangeId of plans.flatMap(rangesOf)) this.#busy.add(rangeId);
    this.#plans.push(...plans);
    return true;
  }

  expected(nodeId: number): NodeTotals {
    return addTotals(this.#from.model.node(nodeId)?.totals ?? NO_TOTALS, this.ledger.changes(nodeId));
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
