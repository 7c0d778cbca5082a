import { compareBytes, ServiceError, unreachable } from '@remora/base';
import {
  type Done,
  type Epoch,
  type NodeDescriptor,
  type OperatorInfo,
  type OperatorsRequest,
  type PauseSchedulerRequest,
  type PlannedChange,
  type RangeChange,
  type RebalanceReply,
  type RebalanceRequest,
  routingKeyText,
  type ScatterReply,
  type ScatterRequest,
  type SchedulerInfo,
  type SetNodeDutyRequest,
  type SteerRangeRequest,
  type WhyReply,
  type WhyRequest,
} from '@remora/protocol';
import type { MasterMembershipController } from '../masters/master-membership-controller.ts';
import type { EndedOperator } from '../metadata/ended-operator.ts';
import type { MasterState } from '../metadata/master-state.ts';
import type { OperatorRecord, Plan } from '../scheduling/operator.ts';
import {
  requestAdd,
  requestMerge,
  requestMove,
  requestRemove,
  requestSplit,
  requireDecommissionable,
  requireMaintainable,
  requireOthersServing,
  requireRemovable,
} from '../scheduling/requests.ts';
import type { Scheduling } from '../scheduling/scheduling.ts';
import { describeStep } from '../scheduling/step.ts';
import type { SchedulingView } from '../scheduling/view.ts';
import { whyNode, whyRange } from '../scheduling/why.ts';
import { endedOperatorInfo } from './operator-history.ts';
import type { SteeringActions } from './steering.ts';

export interface ActionsDeps {
  readonly scheduling: Scheduling;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  /** Includes nodes and ranges that have not reported yet. */
  readonly state: Pick<MasterState, 'nodes' | 'ranges' | 'range' | 'mergedInto' | 'isRemoved' | 'operators'>;
  /** Updates the scheduling with everything heard since its last look: people act on what they see. */
  readonly refresh: () => void;
  readonly masters: Pick<MasterMembershipController, 'isMaster' | 'isHeard' | 'staysBecause' | 'missedBecause' | 'why'>;
  /** Why no operator starts automatically; undefined if they do. */
  readonly restsBecause: () => string | undefined;
  /** These answer once the change is replicated. */
  readonly setDuty: (request: SetNodeDutyRequest, done: Done<undefined>) => void;
  readonly pauseScheduler: (request: PauseSchedulerRequest, done: Done<undefined>) => void;
}

/** Requests of administrators to the scheduling, on the masters' leader. */
export class Actions implements SteeringActions {
  readonly #deps: ActionsDeps;

  constructor(deps: ActionsDeps) {
    this.#deps = deps;
  }

  /** ST1. */
  steerRange(request: SteerRangeRequest): OperatorInfo {
    const { scheduling } = this.#deps;
    this.#deps.refresh();
    const nowMs = this.#deps.monotonicMs();
    const reason = `requested: ${describeChange(request.change)}`;
    const same = this.#same(request, reason);
    if (same !== undefined) return operatorInfo(same, nowMs);
    this.#requireAsSeen(request);
    const admission = scheduling.request({ ...this.#planFor(request), reason }, nowMs);
    const operator = 'admitted' in admission ? admission.admitted[0] : undefined;
    if (operator !== undefined) return operatorInfo(operator, nowMs);
    const refused = 'refused' in admission ? admission.refused : 'nothing needs to be done';
    throw new ServiceError('RESOURCE_EXHAUSTED', `not possible now: ${refused}; wait until it has ended, or cancel it`);
  }

  /** The operator that carries out the request, or has done so. */
  #same({ rangeId, epoch }: SteerRangeRequest, reason: string): OperatorRecord | undefined {
    const { controller } = this.#deps.scheduling;
    const active = controller.operatorOf(rangeId);
    if (active?.kind === 'admin' && active.reason === reason) return active;
    return controller
      .history()
      .find(
        (record) =>
          record.rangeId === rangeId &&
          record.status === 'success' &&
          record.reason === reason &&
          compareEpochs(record.epoch, epoch) === 0,
      );
  }

  /** ST1: a change applies to a range as the person saw it. */
  #requireAsSeen({ rangeId, epoch }: SteerRangeRequest): void {
    const known = this.#deps.scheduling.model.range(rangeId)?.descriptor;
    if (known === undefined) throw this.#notReported(rangeId);
    const order = compareEpochs(epoch, known.epoch);
    if (order < 0) {
      throw wrong(`range ${rangeId} has changed since you looked at it; look again, then repeat the request`);
    }
    if (order > 0) {
      const message = `the leader of range ${rangeId} has not reported its last change yet; try again`;
      throw new ServiceError('UNAVAILABLE', message);
    }
  }

  #planFor({ rangeId, change }: SteerRangeRequest): Plan {
    const view = this.#deps.scheduling.view(this.#deps.monotonicMs());
    switch (change.type) {
      case 'move':
        return requestMove(view, rangeId, change);
      case 'addReplica':
        return requestAdd(view, rangeId, change.nodeId);
      case 'removeReplica':
        return requestRemove(view, rangeId, change.nodeId);
      case 'split':
        return requestSplit(view, rangeId, change.at);
      case 'merge':
        return requestMerge(view, change.source, rangeId);
      default:
        return unreachable(change);
    }
  }

  scatter({ start, end }: ScatterRequest): ScatterReply {
    const { scheduling, monotonicMs } = this.#deps;
    const ids = [...scheduling.model.ranges()]
      .filter(
        ({ descriptor }) =>
          (descriptor.end.length === 0 || compareBytes(start, descriptor.end) < 0) &&
          (end.length === 0 || compareBytes(descriptor.start, end) < 0),
      )
      .map(({ descriptor }) => descriptor.rangeId);
    if (ids.length === 0) throw new ServiceError('UNAVAILABLE', 'no range with these keys has reported yet; try again');
    const paused = scheduling.schedulers.list(monotonicMs()).find(({ name }) => name === 'scatter')?.pausedUntilMs;
    if (paused !== undefined) throw wrong('the scheduler scatter is paused; resume it first');
    scheduling.schedulers.scatter.request(ids, monotonicMs());
    return { ranges: ids.length };
  }

  rebalance({ dryRun }: RebalanceRequest): RebalanceReply {
    const { scheduling, monotonicMs } = this.#deps;
    const rests = this.#deps.restsBecause();
    if (rests !== undefined) throw new ServiceError('RESOURCE_EXHAUSTED', `not possible now: ${rests}`);
    if (dryRun) {
      const { plans, said } = scheduling.rehearse(monotonicMs());
      const schedulers = this.schedulers().map((each) => ({ ...each, last: said.get(each.name) ?? each.last }));
      return { changes: plans.map(plannedChange), schedulers };
    }
    const before = new Set(scheduling.controller.active().map(({ operatorId }) => operatorId));
    scheduling.tick(monotonicMs());
    const begun = scheduling.controller.active().filter(({ operatorId }) => !before.has(operatorId));
    return { changes: begun.map(plannedChange), schedulers: this.schedulers() };
  }

  operators({ ended, rangeId, limit }: OperatorsRequest): readonly OperatorInfo[] {
    const { controller } = this.#deps.scheduling;
    const nowMs = this.#deps.monotonicMs();
    const isMeant = (record: { readonly rangeId: number; readonly partner?: number }): boolean =>
      rangeId === 0 || record.rangeId === rangeId || record.partner === rangeId;
    const own = ended ? controller.history() : controller.active();
    const shown = own.filter(isMeant).map((record) => operatorInfo(record, nowMs));
    if (ended) shown.push(...this.#earlier(new Set(own.map(({ operatorId }) => operatorId)), isMeant));
    return shown.slice(0, limit);
  }

  /** Operators that earlier leaders have ended, newest first. */
  #earlier(own: ReadonlySet<number>, isMeant: (operator: EndedOperator) => boolean): readonly OperatorInfo[] {
    const { state, wallMs } = this.#deps;
    const earlier = state.operators.filter((operator) => !own.has(operator.operatorId) && isMeant(operator));
    return earlier.reverse().map((operator) => endedOperatorInfo(operator, wallMs()));
  }

  cancelOperator(operatorId: number): OperatorInfo {
    const { controller } = this.#deps.scheduling;
    const nowMs = this.#deps.monotonicMs();
    controller.cancel(operatorId, 'cancelled by request', nowMs);
    const ended = controller.history().find((record) => record.operatorId === operatorId);
    if (ended === undefined)
      throw wrong(`unknown operator ${operatorId}; the running operators are ${this.#activeIds()}`);
    if (ended.status === 'cancelled') return operatorInfo(ended, nowMs);
    throw wrong(`operator ${operatorId} has already ended as ${ended.status}: ${ended.outcome}`);
  }

  #activeIds(): string {
    return listed(this.#deps.scheduling.controller.active().map(({ operatorId }) => String(operatorId)));
  }

  schedulers(): readonly SchedulerInfo[] {
    const nowMs = this.#deps.monotonicMs();
    return this.#deps.scheduling.schedulers.list(nowMs).map(({ name, desc, pausedUntilMs, last, settings }) => ({
      ...{ name, description: desc, last, settings },
      pausedMs: pausedUntilMs === undefined ? -1 : pausedUntilMs - nowMs,
    }));
  }

  pauseScheduler(request: PauseSchedulerRequest, done: Done<readonly SchedulerInfo[]>): void {
    const names = this.schedulers().map(({ name }) => name);
    if (!names.includes(request.name)) {
      throw wrong(`unknown scheduler "${request.name}"; the schedulers are ${names.join(', ')}`);
    }
    this.#deps.pauseScheduler(request, (error) =>
      error === undefined ? done(undefined, this.schedulers()) : done(error, undefined),
    );
  }

  why({ rangeId, nodeId }: WhyRequest): WhyReply {
    const lines = rangeId === 0 ? this.#whyNode(nodeId) : this.#whyRange(rangeId);
    const rests = this.#deps.restsBecause();
    return { lines: rests === undefined ? lines : [`no operator starts automatically: ${rests}`, ...lines] };
  }

  #whyRange(rangeId: number): readonly string[] {
    const { scheduling, monotonicMs } = this.#deps;
    const range = scheduling.model.range(rangeId);
    if (range === undefined) throw this.#notReported(rangeId);
    return whyRange(scheduling, range, monotonicMs());
  }

  #whyNode(nodeId: number): readonly string[] {
    const { scheduling, monotonicMs } = this.#deps;
    const { roles } = this.#node(nodeId);
    const lines = this.#deps.masters.why(nodeId);
    if (!roles.includes('data')) return [...lines, 'it stores no data, so no replicas are moved to or from it'];
    const node = scheduling.model.node(nodeId);
    if (node === undefined) return [...lines, "it has not reported since the masters' leader was elected"];
    return [...lines, ...whyNode(scheduling, node, monotonicMs())];
  }

  setNodeDuty(request: SetNodeDutyRequest, done: Done<undefined>): void {
    this.#deps.refresh();
    this.#requireSuitable(request);
    this.#deps.setDuty(request, done);
  }

  #requireSuitable({ nodeId, duty }: SetNodeDutyRequest): void {
    const { roles } = this.#node(nodeId);
    if (this.#deps.state.isRemoved(nodeId) && duty !== 'removed') {
      throw wrong(
        `node ${nodeId} was removed permanently; its machine can join as a new node with an empty data directory`,
      );
    }
    const view = this.#deps.scheduling.view(this.#deps.monotonicMs());
    // The model has only nodes with data.
    const up = view.model.node(nodeId)?.info.liveness === 'up' || this.#deps.masters.isHeard(nodeId);
    if (duty === 'removed' && this.#deps.masters.isMaster(nodeId) && up) {
      throw wrong(
        `node ${nodeId} is a master and is up: stop it first, provided that the other masters are a majority`,
      );
    }
    if (!roles.includes('data')) {
      if (duty === 'removed' || duty === 'serving') return;
      if (duty === 'decommissioning' && roles.includes('master')) return this.#requireReplaceableMaster(nodeId);
      throw wrong(`node ${nodeId} stores no data, so there is nothing to move; stop or remove it directly`);
    }
    switch (duty) {
      case 'serving':
        return;
      case 'draining':
        return requireOthersServing(view, nodeId);
      case 'maintenance':
        requireOthersServing(view, nodeId);
        this.#requireReported(view, nodeId);
        requireMaintainable(view, nodeId);
        return this.#requireSpareMaster(nodeId);
      case 'decommissioning':
        requireDecommissionable(view, nodeId);
        return this.#requireReplaceableMaster(nodeId);
      case 'removed':
        if (!this.#requireReported(view, nodeId)) return;
        return requireRemovable(view, nodeId);
      default:
        return unreachable(duty);
    }
  }

  #requireReplaceableMaster(nodeId: number): void {
    const stays = this.#deps.masters.staysBecause(nodeId);
    if (stays !== undefined) throw wrong(`node ${nodeId} cannot be emptied: ${stays}`);
  }

  #requireSpareMaster(nodeId: number): void {
    const missed = this.#deps.masters.missedBecause(nodeId);
    if (missed !== undefined) throw wrong(`${missed}; wait until it is back`);
  }

  /**
   * The metadata decide what a node has: reports may be behind them, or missing, and an unreported replica cannot be
   * checked. Returns whether the node has any replicas.
   */
  #requireReported({ model }: SchedulingView, nodeId: number): boolean {
    const held = this.#deps.state
      .ranges()
      .filter(({ replicas }) => replicas.some((replica) => replica.nodeId === nodeId));
    const silent = held.find(({ rangeId }) => model.range(rangeId) === undefined);
    if (silent !== undefined) throw this.#notReported(silent.rangeId);
    return held.length > 0;
  }

  #node(nodeId: number): NodeDescriptor {
    const nodes = this.#deps.state.nodes();
    const node = nodes.find((each) => each.nodeId === nodeId);
    if (node !== undefined) return node;
    throw wrong(
      `unknown node ${nodeId}; the nodes are ${listed(nodes.map((each) => `${each.name} (${each.nodeId})`))}`,
    );
  }

  #notReported(rangeId: number): ServiceError {
    const { state } = this.#deps;
    if (state.range(rangeId) === undefined) {
      const into = state.mergedInto(rangeId);
      const why = into === undefined ? `unknown range ${rangeId}` : `range ${rangeId} was merged into range ${into}`;
      return new ServiceError('RANGE_NOT_FOUND', `${why}; see the list of ranges`);
    }
    const message = `no leader of range ${rangeId} has reported since the masters' leader was elected; it cannot be changed until one does`;
    return new ServiceError('UNAVAILABLE', message);
  }
}

/** Identifies a request, so that repetitions can be recognized. */
function describeChange(change: RangeChange): string {
  switch (change.type) {
    case 'move':
      return `move from node ${change.from} to node ${change.to}`;
    case 'addReplica':
      return `add a replica on node ${change.nodeId}`;
    case 'removeReplica':
      return `remove the replica on node ${change.nodeId}`;
    case 'split':
      return change.at === undefined ? 'split in the middle' : `split at ${routingKeyText(change.at)}`;
    case 'merge':
      return `merge range ${change.source} into it`;
    default:
      return unreachable(change);
  }
}

/** By `version` first: bounds change more rarely than members, and permanently. */
function compareEpochs(a: Epoch, b: Epoch): number {
  return a.version - b.version || a.confVersion - b.confVersion;
}

function operatorInfo(record: OperatorRecord, nowMs: number): OperatorInfo {
  const { operatorId, rangeId, kind, status, reason, steps, step, createdAtMs, endedAtMs, outcome } = record;
  return {
    ...{ operatorId, rangeId, kind, status, reason, step, outcome },
    steps: steps.map(describeStep),
    ageMs: nowMs - createdAtMs,
    endedMs: endedAtMs === undefined ? -1 : nowMs - endedAtMs,
  };
}

function plannedChange({ rangeId, kind, reason, steps }: Plan): PlannedChange {
  return { rangeId, kind, reason, steps: steps.map(describeStep) };
}

const LISTED_MAX = 20;

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const more = names.length > LISTED_MAX ? ` and ${names.length - LISTED_MAX} more` : '';
  return names.slice(0, LISTED_MAX).join(', ') + more;
}

function wrong(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
