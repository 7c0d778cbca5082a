import { type Bytes, compareBytes, ServiceError } from '@remora/base';
import {
  masterCancelOperator,
  masterOperators,
  masterPauseScheduler,
  masterRebalance,
  masterScatter,
  masterSchedulers,
  masterSetNodeDuty,
  masterSteerRange,
  masterWhy,
} from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { CallInfo } from '../calls.ts';
import { toId } from './admin-messages.ts';
import type { ClusterCalls } from './cluster-calls.ts';
import {
  fromOperator,
  fromRebalance,
  fromSchedulers,
  toChange,
  toEpoch,
  toNodeDuty,
  toOperatorsRequest,
  toPause,
  toWhy,
} from './steering-messages.ts';

/** The calls of `remora.v1.Admin` with which operators steer the cluster; the master's leader decides on them. */
export class SteeringApi {
  readonly #calls: ClusterCalls;

  constructor(calls: ClusterCalls) {
    this.#calls = calls;
  }

  /** All attempts carry the epoch that was read first, so that the change is made once (ST1). */
  async changeRange(request: admin.ChangeRangeRequest, { timeoutMs }: CallInfo): Promise<admin.Operator> {
    const rangeId = toId(request.rangeId, 'range_id');
    const change = toChange(request);
    const epoch = toEpoch(request) ?? (await this.#calls.range(rangeId, timeoutMs)).descriptor.epoch;
    return fromOperator(await this.#calls.change(masterSteerRange, { rangeId, epoch, change }, timeoutMs));
  }

  async scatter({ start, end }: admin.ScatterRequest, { timeoutMs }: CallInfo): Promise<admin.ScatterResponse> {
    requireOrder(start, end);
    return this.#calls.change(masterScatter, { start, end }, timeoutMs);
  }

  async rebalance({ dryRun }: admin.RebalanceRequest, { timeoutMs }: CallInfo): Promise<admin.RebalanceResponse> {
    return fromRebalance(await this.#calls.change(masterRebalance, { dryRun }, timeoutMs));
  }

  async listOperators(
    request: admin.ListOperatorsRequest,
    { timeoutMs }: CallInfo,
  ): Promise<admin.ListOperatorsResponse> {
    const operators = await this.#calls.master(masterOperators, toOperatorsRequest(request), timeoutMs);
    return { operators: operators.map(fromOperator) };
  }

  async cancelOperator({ id }: admin.CancelOperatorRequest, { timeoutMs }: CallInfo): Promise<admin.Operator> {
    const request = { operatorId: toId(id, 'id') };
    return fromOperator(await this.#calls.change(masterCancelOperator, request, timeoutMs));
  }

  async listSchedulers(
    _request: admin.ListSchedulersRequest,
    { timeoutMs }: CallInfo,
  ): Promise<admin.ListSchedulersResponse> {
    return { schedulers: fromSchedulers(await this.#calls.master(masterSchedulers, undefined, timeoutMs)) };
  }

  async pauseScheduler(
    request: admin.PauseSchedulerRequest,
    { timeoutMs }: CallInfo,
  ): Promise<admin.ListSchedulersResponse> {
    return { schedulers: fromSchedulers(await this.#calls.change(masterPauseScheduler, toPause(request), timeoutMs)) };
  }

  async setNodeDuty(request: admin.SetNodeDutyRequest, { timeoutMs }: CallInfo): Promise<admin.SetNodeDutyResponse> {
    await this.#calls.change(masterSetNodeDuty, toNodeDuty(request), timeoutMs);
    return {};
  }

  async why(request: admin.WhyRequest, { timeoutMs }: CallInfo): Promise<admin.WhyResponse> {
    const { lines } = await this.#calls.master(masterWhy, toWhy(request), timeoutMs);
    return { lines: [...lines] };
  }
}

function requireOrder(start: Bytes, end: Bytes): void {
  if (end.length === 0 || compareBytes(start, end) < 0) return;
  throw new ServiceError('INVALID_ARGUMENT', 'end must be above start, or empty for everything up to the last key');
}
