/**
 * Executes operators: admits them, instructs ranges when their heartbeats arrive, and ends operators that are finished,
 * overdue or superseded.
 *
 * K1. A range takes part in at most one operator; a more urgent operator ends the current one.
 * K2. Plans that belong together are admitted together or not at all, and they take effect together: an operator
 *     continues after copying data only when all operators of its group can, and ends when another one of the group
 *     ends before that.
 * K3. Every refusal and every end has a reason.
 * K4. All memory is bounded: the history by its length, memories about ranges by time.
 */
import { assert } from '@remora/base';
import { addTotals, type ClusterView, NO_TOTALS, type NodeTotals } from './cluster-model.ts';
import { limitReached, respectsRest } from './limits.ts';
import { Operator, type OperatorRecord, type OperatorStatus, type Plan, rangesOf, URGENCY } from './operator.ts';
import { InfluenceSum, influenceOf, type OperatorInfluence } from './operator-influence.ts';
import { RangeMemory } from './range-memory.ts';
import type { Settings } from './settings.ts';
import { type Instruction, stepTimeoutMs } from './step.ts';

export interface ControllerDeps {
  readonly model: ClusterView;
  readonly settings: () => Settings;
  /** Returns a new replica id; undefined while none is available. */
  readonly nextReplicaId: () => number | undefined;
  /** The first operator id: the ids of different leaders of the masters differ. */
  readonly firstOperatorId: number;
  /** Told of each operator that has ended. */
  readonly onEnd?: ((record: OperatorRecord) => void) | undefined;
}

export type Admission = { readonly admitted: readonly OperatorRecord[] } | { readonly refused: string };

interface Running {
  readonly operator: Operator;
  influence: OperatorInfluence;
  readonly group: Group;
}

/** Operators that were admitted together (K2). */
interface Group {
  readonly members: Set<Running>;
  /** Operators that have copied their data. */
  readonly ready: Set<Running>;
}

/** How long an operator may wait for its range's first heartbeat. */
const START_TIMEOUT_MS = 60_000;
const HISTORY_MAX = 1_000;
/** After this many refusals of one step, its operator has failed. */
const REFUSALS_MAX = 5;

export class Controller {
  readonly #deps: ControllerDeps;
  readonly influenceSum = new InfluenceSum();
  readonly memory = new RangeMemory();
  /** By range; an operator with a partner is there twice. */
  readonly #running = new Map<number, Running>();
  readonly #history: OperatorRecord[] = [];
  #nextOperatorId: number;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#nextOperatorId = deps.firstOperatorId;
  }

  /** K1, K2. */
  admit(plans: readonly Plan[], nowMs: number): Admission {
    const influences: OperatorInfluence[] = [];
    const ranges = new Set<number>();
    for (const plan of plans) {
      const refused = this.#conflict(plan, nowMs) ?? (rangesOf(plan).some((id) => ranges.has(id)) ? TWICE : undefined);
      if (refused !== undefined) return { refused };
      for (const rangeId of rangesOf(plan)) ranges.add(rangeId);
      const range = this.#deps.model.range(plan.rangeId);
      assert(range !== undefined, 'a plan without conflict has a range');
      influences.push(influenceOf(plan.kind, plan.steps, range));
    }
    const limit = limitReached(this.influenceSum, influences, this.#deps.settings());
    if (limit !== undefined) return { refused: limit };
    const group: Group = { members: new Set(), ready: new Set() };
    return { admitted: plans.map((plan, i) => this.#add(plan, influences[i], group, nowMs)) };
  }

  /** Called when a range has reported: returns the current instruction for its leader. */
  dispatch(rangeId: number, nowMs: number): Instruction | undefined {
    const running = this.#running.get(rangeId);
    const range = this.#deps.model.range(rangeId);
    if (running === undefined || running.operator.rangeId !== rangeId || range === undefined) return undefined;
    const { operator } = running;
    if (operator.status === 'created') operator.start(nowMs);
    const before = operator.step;
    const { model, settings, nextReplicaId } = this.#deps;
    const status = operator.advance(range, { model, settings: settings(), nextReplicaId, nowMs });
    if (status.type === 'finished') this.#end(running, 'success', 'done', nowMs);
    else if (status.type === 'impossible') this.#end(running, 'cancelled', status.reason, nowMs);
    else if (operator.step !== before) this.#weighAnew(running);
    return status.type === 'tell' && this.#reachBarrier(running, status.instruction, nowMs)
      ? status.instruction
      : undefined;
  }

  /** K2. Marks the operator as ready, and returns whether all operators of its group are. */
  #reachBarrier(running: Running, instruction: Instruction, nowMs: number): boolean {
    const { members, ready } = running.group;
    if (instruction.type === 'addLearner' || members.size === 1) return true;
    ready.add(running);
    if (ready.size === members.size) return true;
    running.operator.hold(nowMs);
    return false;
  }

  /**
   * The range's leader did not carry out its instruction. One refusal may be temporary; repeated refusals end the
   * operator.
   */
  refused(rangeId: number, reason: string, nowMs: number): void {
    const operator = this.#running.get(rangeId)?.operator;
    if (operator?.status === 'started' && operator.refuse(reason) >= REFUSALS_MAX) this.failed(rangeId, reason, nowMs);
  }

  /** The range's leader is carrying out its instruction, or has done so: records what it waits for, if anything. */
  noted(rangeId: number, waitsFor: string): void {
    const operator = this.#running.get(rangeId)?.operator;
    if (operator?.status === 'started') operator.note(waitsFor);
  }

  /** The operator's change of a range is impossible. */
  failed(rangeId: number, reason: string, nowMs: number): void {
    const running = this.#running.get(rangeId);
    if (running === undefined) return;
    if (running.operator.status === 'created') this.#end(running, 'cancelled', reason, nowMs);
    else this.#end(running, 'failed', reason, nowMs);
  }

  /** Ends an operator; the effects of its completed steps stay. Returns whether there was one. */
  cancel(operatorId: number, reason: string, nowMs: number): boolean {
    for (const running of this.#running.values()) {
      if (running.operator.operatorId !== operatorId) continue;
      this.#end(running, 'cancelled', reason, nowMs);
      return true;
    }
    return false;
  }

  /** Ends operators that took too long, or that lost their range. */
  tick(nowMs: number): void {
    for (const running of [...this.#running.values()]) {
      if (running.operator.ended) continue;
      const { operator } = running;
      const range = this.#deps.model.range(operator.rangeId);
      if (range === undefined) {
        this.#end(running, 'cancelled', 'the range was merged into another one', nowMs);
        continue;
      }
      const late = this.#lateness(operator, nowMs);
      if (late !== undefined) this.#end(running, 'timedOut', late, nowMs);
    }
    this.memory.forget(nowMs, this.#deps.settings());
  }

  operatorOf(rangeId: number): OperatorRecord | undefined {
    return this.#running.get(rangeId)?.operator.record();
  }

  isBusy(rangeId: number): boolean {
    return this.#running.has(rangeId);
  }

  /** Running operators, oldest first. */
  active(): readonly OperatorRecord[] {
    const all = new Set([...this.#running.values()].map(({ operator }) => operator));
    return [...all].map((operator) => operator.record()).sort((a, b) => a.operatorId - b.operatorId);
  }

  /** The running operators, for a dry run of what could begin beside them. */
  inFlight(): { readonly rangeIds: ReadonlySet<number>; readonly influences: readonly OperatorInfluence[] } {
    const influences = [...new Set(this.#running.values())].map(({ influence }) => influence);
    return { rangeIds: new Set(this.#running.keys()), influences };
  }

  /** Ended operators, newest first. */
  history(max = HISTORY_MAX): readonly OperatorRecord[] {
    return this.#history.slice(-max).reverse();
  }

  /** What a node will carry when all running operators are done. */
  expected(nodeId: number): NodeTotals {
    return addTotals(this.#deps.model.node(nodeId)?.totals ?? NO_TOTALS, this.influenceSum.changes(nodeId));
  }

  /** Why a plan cannot be admitted for its range; undefined if it can. */
  #conflict(plan: Plan, nowMs: number): string | undefined {
    const range = this.#deps.model.range(plan.rangeId);
    if (range === undefined) return `unknown range ${plan.rangeId}`;
    const { confVersion, version } = range.descriptor.epoch;
    if (confVersion !== plan.epoch.confVersion || version !== plan.epoch.version) {
      return `range ${plan.rangeId} has changed since this was planned`;
    }
    for (const rangeId of rangesOf(plan)) {
      const other = this.#running.get(rangeId)?.operator;
      if (other !== undefined && URGENCY[plan.kind] >= URGENCY[other.kind]) {
        return `operator ${other.operatorId} is running for range ${rangeId} (${other.describe()})`;
      }
    }
    if (!respectsRest(plan.kind)) return undefined;
    const untilMs = this.memory.restsUntil(plan.rangeId, this.#deps.settings());
    if (untilMs <= nowMs) return undefined;
    return `range ${plan.rangeId} was moved recently and is left alone for another ${Math.ceil((untilMs - nowMs) / 1_000)} s`;
  }

  #add(plan: Plan, influence: OperatorInfluence | undefined, group: Group, nowMs: number): OperatorRecord {
    const range = this.#deps.model.range(plan.rangeId);
    assert(range !== undefined && influence !== undefined, 'what is admitted has a range');
    for (const rangeId of rangesOf(plan)) {
      const before = this.#running.get(rangeId);
      if (before !== undefined)
        this.#end(before, 'replaced', `replaced by a more urgent operator: ${plan.reason}`, nowMs);
    }
    const operator = new Operator(this.#nextOperatorId++, plan, range, nowMs);
    const running: Running = { operator, influence, group };
    group.members.add(running);
    for (const rangeId of rangesOf(plan)) this.#running.set(rangeId, running);
    this.influenceSum.add(influence);
    return operator.record();
  }

  #end(running: Running, status: Exclude<OperatorStatus, 'created' | 'started'>, outcome: string, nowMs: number): void {
    const { operator } = running;
    operator.end(status, outcome, nowMs);
    for (const rangeId of rangesOf(operator)) {
      this.#running.delete(rangeId);
      this.memory.moved(rangeId, nowMs);
    }
    this.influenceSum.remove(running.influence);
    if (status === 'timedOut' || status === 'failed') {
      for (const nodeId of running.influence.receives) this.memory.avoid(operator.rangeId, nodeId, nowMs);
    }
    const record = operator.record();
    this.#history.push(record);
    this.#deps.onEnd?.(record);
    this.#endGroup(running, status, nowMs);
    if (this.#history.length > 2 * HISTORY_MAX) this.#history.splice(0, HISTORY_MAX); // K4
  }

  /** K2: once all were ready, each continues on its own. */
  #endGroup(ended: Running, status: OperatorStatus, nowMs: number): void {
    const { members, ready } = ended.group;
    if (status === 'success') ready.add(ended);
    if (status === 'success' || ready.size === members.size) return;
    for (const other of members) {
      if (other.operator.ended) continue;
      this.#end(other, 'cancelled', `operator ${ended.operator.operatorId}, which belongs to it, ended`, nowMs);
    }
  }

  /** Updates the influence of an operator: the remaining work is less. */
  #weighAnew(running: Running): void {
    const range = this.#deps.model.range(running.operator.rangeId);
    assert(range !== undefined, 'an operator that advances has a range');
    this.influenceSum.remove(running.influence);
    running.influence = influenceOf(running.operator.kind, running.operator.remaining, range);
    this.influenceSum.add(running.influence);
  }

  #lateness(operator: Operator, nowMs: number): string | undefined {
    if (operator.status === 'created') {
      return nowMs - operator.createdAtMs > START_TIMEOUT_MS ? 'the range has not reported' : undefined;
    }
    const step = operator.current;
    assert(step !== undefined, 'a running operator has a step');
    const range = this.#deps.model.range(operator.rangeId);
    const timeoutMs = stepTimeoutMs(step, range, this.#deps.settings());
    if (nowMs - operator.stepSinceMs <= timeoutMs) return undefined;
    const { outcome: waitsFor } = operator.record();
    const why = waitsFor === '' ? '' : ` (at the end: ${waitsFor})`;
    return `took longer than ${Math.round(timeoutMs / 1_000)} s: ${operator.describe()}${why}`;
  }
}

const TWICE = 'one range cannot be changed in two ways at once';
