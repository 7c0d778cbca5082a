/**
 * An operator: the changes to be made to one range, as steps, and its progress.
 *
 * O1. The status changes only along LEGAL; the last four values are final.
 * O2. The members of the range are those that the completed steps produced, or are in transition to those of the
 *     current step. If they are different, someone else changed them, and the operator ends: it was planned for another
 *     state of the range.
 */
import { assert } from '@remora/base';
import type { Epoch } from '@remora/protocol';
import type { RangeInfo } from './cluster-model.ts';
import {
  describeStep,
  isOnTheWay,
  type Members,
  membersAfter,
  membersOf,
  type Step,
  type StepContext,
  type StepStatus,
  stepStatus,
} from './step.ts';

/**
 * The purpose of an operator. It determines its urgency and its limits.
 *  - `repair`: a range has lost redundancy, or a change of it is unfinished.
 *  - `admin`: an administrator requested it.
 *  - `evacuate`: a node must give up its replicas or leaders.
 *  - `place`: replicas are badly isolated, or too many.
 *  - `merge`: adjacent ranges have become small; also moves them to the same nodes.
 *  - `scatter`, `balanceReplicas`, `balanceLeaders`: the load could be spread better.
 */
export type OperatorKind =
  | 'repair'
  | 'admin'
  | 'evacuate'
  | 'place'
  | 'scatter'
  | 'merge'
  | 'balanceReplicas'
  | 'balanceLeaders';

/** Smaller is more urgent. A more urgent operator replaces another one. */
export const URGENCY: Readonly<Record<OperatorKind, number>> = {
  repair: 0,
  admin: 1,
  evacuate: 2,
  place: 3,
  scatter: 4,
  merge: 5,
  balanceReplicas: 5,
  balanceLeaders: 5,
};

/** A change that a checker, a scheduler or a person requests. */
export interface Plan {
  readonly rangeId: number;
  /** The epoch of the range when it was planned. */
  readonly epoch: Epoch;
  readonly kind: OperatorKind;
  readonly steps: readonly Step[];
  /** The reason, for people. */
  readonly reason: string;
  /** Another range that takes part and must be left alone: the one that a merge ends. */
  readonly partner?: number;
}

/** The ranges that take part. */
export function rangesOf({ rangeId, partner }: Pick<Plan, 'rangeId' | 'partner'>): readonly number[] {
  return partner === undefined ? [rangeId] : [rangeId, partner];
}

export type OperatorStatus = 'created' | 'started' | 'success' | 'failed' | 'cancelled' | 'timedOut' | 'replaced';

/**
 * O1. From `created` it may end before it was started: it was cancelled or replaced, its range never reported in time,
 *     or it could not begin.
 */
export const LEGAL: Readonly<Record<OperatorStatus, readonly OperatorStatus[]>> = {
  created: ['started', 'cancelled', 'timedOut', 'replaced'],
  started: ['success', 'failed', 'cancelled', 'timedOut', 'replaced'],
  success: [],
  failed: [],
  cancelled: [],
  timedOut: [],
  replaced: [],
};

/** An operator as it is shown and stored. */
export interface OperatorRecord extends Plan {
  readonly operatorId: number;
  readonly status: OperatorStatus;
  /** The current step, or the one at which it ended. */
  readonly step: number;
  /** When that step began. */
  readonly stepSinceMs: number;
  readonly createdAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Why it ended with this status; until then, what it waits for. */
  readonly outcome: string;
}

interface AdvanceContext extends StepContext {
  readonly nowMs: number;
  /** Undefined while none is available. */
  readonly nextReplicaId: () => number | undefined;
}

export class Operator {
  readonly operatorId: number;
  readonly rangeId: number;
  readonly epoch: Epoch;
  readonly kind: OperatorKind;
  readonly steps: readonly Step[];
  readonly reason: string;
  readonly partner?: number;
  readonly createdAtMs: number;
  #status: OperatorStatus = 'created';
  #step = 0;
  #stepSinceMs: number;
  #endedAtMs: number | undefined;
  #outcome = '';
  #members: Members;
  /** The id of the replica that the current step adds; 0 if none was drawn. */
  #replicaId = 0;
  /** Refusals of the current step. */
  #refusals = 0;
  /** What the current step waits for, or its last result. */
  #waitsFor = '';

  constructor(operatorId: number, plan: Plan, range: RangeInfo, nowMs: number) {
    assert(plan.steps.length > 0, 'an operator has steps');
    this.operatorId = operatorId;
    this.rangeId = plan.rangeId;
    this.epoch = plan.epoch;
    this.kind = plan.kind;
    this.steps = plan.steps;
    this.reason = plan.reason;
    if (plan.partner !== undefined) this.partner = plan.partner;
    this.createdAtMs = nowMs;
    this.#stepSinceMs = nowMs;
    this.#members = membersOf(range);
  }

  get status(): OperatorStatus {
    return this.#status;
  }

  get step(): number {
    return this.#step;
  }

  get stepSinceMs(): number {
    return this.#stepSinceMs;
  }

  get current(): Step | undefined {
    return this.steps[this.#step];
  }

  get remaining(): readonly Step[] {
    return this.steps.slice(this.#step);
  }

  get ended(): boolean {
    return LEGAL[this.#status].length === 0;
  }

  start(nowMs: number): void {
    this.#move('started');
    this.#stepSinceMs = nowMs;
  }

  end(status: Exclude<OperatorStatus, 'created' | 'started'>, outcome: string, nowMs: number): void {
    this.#move(status);
    this.#outcome = outcome;
    this.#endedAtMs = nowMs;
  }

  /** The status of the current step in the reported range; advances over completed steps. */
  advance(range: RangeInfo, context: AdvanceContext): StepStatus {
    const before = this.#step;
    const status = this.#advance(range, context);
    if (status.type === 'wait') this.#waitsFor = status.reason;
    else if (this.#step !== before) this.#waitsFor = '';
    return status;
  }

  #advance(range: RangeInfo, context: AdvanceContext): StepStatus {
    for (let step = this.current; step !== undefined; step = this.current) {
      // The id is drawn when the step is reached, so a step that is never reached costs none.
      if (step.type === 'addLearner' && this.#replicaId === 0) this.#replicaId = context.nextReplicaId() ?? 0;
      if (step.type === 'addLearner' && this.#replicaId === 0)
        return { type: 'wait', reason: 'no replica id is allocated yet' };
      const status = this.#statusOf(step, range, context);
      if (status.type !== 'finished') return status;
      this.#members = membersAfter(step, this.#members);
      this.#step += 1;
      this.#stepSinceMs = context.nowMs;
      this.#replicaId = 0;
      this.#refusals = 0;
    }
    return { type: 'finished' };
  }

  /** A description of its current action. */
  describe(): string {
    const step = this.current;
    return step === undefined ? this.reason : `${this.reason}: ${describeStep(step)}`;
  }

  /** The current step was refused once more; returns the number of refusals. */
  refuse(reason: string): number {
    this.#refusals += 1;
    this.#waitsFor = `refused so far: ${reason}`;
    return this.#refusals;
  }

  /** Records what the range's leader waits for in carrying out its instruction; empty: nothing. */
  note(waitsFor: string): void {
    this.#waitsFor = waitsFor;
  }

  /** The operator waits for others: that time does not count. */
  hold(nowMs: number): void {
    this.#stepSinceMs = nowMs;
  }

  record(): OperatorRecord {
    const { operatorId, rangeId, epoch, kind, steps, reason, partner, createdAtMs } = this;
    return {
      ...{ operatorId, rangeId, epoch, kind, steps, reason, createdAtMs },
      ...(partner === undefined ? {} : { partner }),
      status: this.#status,
      step: this.#step,
      stepSinceMs: this.#stepSinceMs,
      endedAtMs: this.#endedAtMs,
      outcome: this.ended ? this.#outcome : this.#waitsFor,
    };
  }

  #statusOf(step: Step, range: RangeInfo, context: StepContext): StepStatus {
    const status = stepStatus(step, range, context, this.#replicaId);
    if (step.type === 'leaveJoint') return status; // whatever its result
    const after = membersAfter(step, this.#members);
    const before = status.type === 'finished' ? after : this.#members;
    if (!isOnTheWay(membersOf(range), before, after)) {
      return { type: 'impossible', reason: 'the membership was changed by something else' };
    }
    const version = range.descriptor.epoch.version;
    if (version !== this.epoch.version && step.type !== 'split' && step.type !== 'merge') {
      return { type: 'impossible', reason: 'the range was split or merged in the meantime' };
    }
    return status;
  }

  /** O1. */
  #move(to: OperatorStatus): void {
    assert(LEGAL[this.#status].includes(to), `O1: an operator goes from ${this.#status} to ${to}`);
    this.#status = to;
  }
}
