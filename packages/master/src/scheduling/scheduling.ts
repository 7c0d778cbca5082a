/**
 * Decides what moves where: takes reports of nodes and ranges, answers the ranges with their next instruction, and on
 * each tick looks for problems and for load that could be balanced. It uses no clock, disk or network: equal calls in
 * equal order give equal decisions.
 */
import { ClusterModel, type NodeInfo, type RangeInfo } from './cluster-model.ts';
import { type Admission, Controller } from './controller.ts';
import type { OperatorRecord, Plan } from './operator.ts';
import { checkRange, type Verdict } from './range-check.ts';
import { Rehearsal } from './rehearsal.ts';
import { SchedulerSet } from './schedulers/scheduler-set.ts';
import { DEFAULT_SETTINGS, type Settings } from './settings.ts';
import type { Instruction } from './step.ts';
import { SchedulingView } from './view.ts';

export interface SchedulingDeps {
  /** Returns a new replica id; undefined while none is available. */
  readonly nextReplicaId: () => number | undefined;
  readonly settings?: Settings;
  /** The first operator id; 1 by default. */
  readonly firstOperatorId?: number;
  /** Told of each operator that has ended. */
  readonly onEnd?: (record: OperatorRecord) => void;
}

/** The number of ranges that one tick checks, to bound its time. The others follow in the next ticks. */
const CHECKS_PER_TICK = 2_000;
/** The share of ranges that wait for a limit: if very many wait, the others must be checked all the same. */
const WAITING_PER_TICK = CHECKS_PER_TICK / 2;

export class Scheduling {
  readonly model = new ClusterModel();
  readonly controller: Controller;
  readonly schedulers = new SchedulerSet();
  #settings: Settings;
  /** Ranges to check, in the order of their arrival. */
  readonly #dirty = new Set<number>();
  /** Ranges whose repair was refused by a limit. */
  readonly #waiting = new Set<number>();

  constructor({ nextReplicaId, settings = DEFAULT_SETTINGS, firstOperatorId = 1, onEnd }: SchedulingDeps) {
    this.#settings = settings;
    const deps = { model: this.model, nextReplicaId, firstOperatorId, onEnd };
    this.controller = new Controller({ ...deps, settings: () => this.#settings });
  }

  get settings(): Settings {
    return this.#settings;
  }

  configure(settings: Settings): void {
    this.#settings = settings;
    for (const { descriptor } of this.model.ranges()) this.#dirty.add(descriptor.rangeId);
  }

  /** Receives nodes that store data, including removed ones: their replicas have to be replaced. */
  nodeReported(info: NodeInfo): void {
    const before = this.model.node(info.nodeId)?.info;
    this.model.setNode(info);
    if (before?.liveness === info.liveness && before.duty === info.duty) return;
    for (const rangeId of this.model.node(info.nodeId)?.ranges ?? []) this.#dirty.add(rangeId);
  }

  /** Receives a range's heartbeat; returns the current instruction for its leader. */
  rangeReported(info: RangeInfo, nowMs: number): Instruction | undefined {
    const { rangeId } = info.descriptor;
    if (!this.model.setRange(info)) return undefined;
    this.#dirty.add(rangeId);
    return this.controller.dispatch(rangeId, nowMs);
  }

  /** A range that was merged into another. */
  rangeRemoved(rangeId: number): void {
    this.model.removeRange(rangeId);
    this.#dirty.delete(rangeId);
    this.#waiting.delete(rangeId);
  }

  /** Called every second or so. Repairs come before balance. */
  tick(nowMs: number): void {
    this.controller.tick(nowMs);
    const view = this.view(nowMs);
    this.#check(view);
    this.schedulers.run(view, (plans) => 'admitted' in this.controller.admit(plans, nowMs), this.#waiting.size);
  }

  /** Admits a plan that a person requested. */
  request(plan: Plan, nowMs: number): Admission {
    return this.controller.admit([plan], nowMs);
  }

  /** Returns what the schedulers would begin now, with their explanations; changes nothing. */
  rehearse(nowMs: number): { readonly plans: readonly Plan[]; readonly said: ReadonlyMap<string, string> } {
    const { model } = this;
    const rehearsal = new Rehearsal(this.controller, { model, settings: this.#settings, nowMs });
    const view = new SchedulingView(rehearsal, { model, settings: this.#settings, nowMs });
    const said = this.schedulers.rehearse(view, (plans) => rehearsal.admit(plans), this.#waiting.size);
    return { plans: rehearsal.plans, said };
  }

  view(nowMs: number): SchedulingView {
    return new SchedulingView(this.controller, { model: this.model, settings: this.#settings, nowMs });
  }

  /** Returns what is wrong with a range, if anything; changes nothing. */
  check(rangeId: number, nowMs: number): Verdict | undefined {
    const range = this.model.range(rangeId);
    return range === undefined ? undefined : checkRange(range, this.view(nowMs));
  }

  #check(view: SchedulingView): void {
    const due: number[] = [];
    for (const rangeId of this.#waiting) {
      if (due.length >= WAITING_PER_TICK) break;
      due.push(rangeId); // behind all others, in case it has to wait again
    }
    for (const rangeId of this.#dirty) {
      if (due.length >= CHECKS_PER_TICK) break;
      this.#dirty.delete(rangeId);
      if (!this.#waiting.has(rangeId)) due.push(rangeId);
    }
    for (const rangeId of due) this.#checkOne(rangeId, view);
  }

  #checkOne(rangeId: number, view: SchedulingView): void {
    this.#waiting.delete(rangeId);
    const range = this.model.range(rangeId);
    const verdict = range === undefined ? undefined : checkRange(range, view);
    if (verdict?.type !== 'plan') return;
    const { kind } = verdict.plan;
    const admission = this.controller.admit([verdict.plan], view.nowMs);
    if ('refused' in admission && kind === 'repair' && !view.isBusy(rangeId)) this.#waiting.add(rangeId);
  }
}
