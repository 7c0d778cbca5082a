/** Converts steering requests and answers of `remora.v1.Admin` from and to the messages between roles. */
import { ServiceError, unreachable } from '@remora/base';
import {
  type Epoch,
  type NodeDuty,
  OPERATORS_MAX,
  type OperatorInfo,
  type OperatorsRequest,
  type PauseSchedulerRequest,
  type RangeChange,
  type RebalanceReply,
  type SchedulerInfo,
  type SetNodeDutyRequest,
  type WhyRequest,
} from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { toId, toOptionalId } from './admin-messages.ts';

const OPERATORS_DEFAULT = 100;
/** Reads the length of a maintenance window or a pause. */
const DURATION_MAX_MS = 30 * 24 * 3_600_000;

export function toChange({ change }: admin.ChangeRangeRequest): RangeChange {
  if (change === undefined) {
    throw wrong('change is missing: one of move, add_replica, remove_replica, split and merge');
  }
  switch (change.$case) {
    case 'move': {
      const { fromNode, toNode } = change.value;
      return { type: 'move', from: toId(fromNode, 'from_node'), to: toId(toNode, 'to_node') };
    }
    case 'addReplica':
    case 'removeReplica':
      return { type: change.$case, nodeId: toId(change.value.node, 'node') };
    case 'split':
      return { type: 'split', at: change.value.at.length === 0 ? undefined : change.value.at };
    case 'merge':
      return { type: 'merge', source: toId(change.value.source, 'source') };
    default:
      return unreachable(change);
  }
}

/** Reads an epoch; undefined: the range's present one. */
export function toEpoch({ confVersion, version }: admin.ChangeRangeRequest): Epoch | undefined {
  if (confVersion === 0n && version === 0n) return undefined;
  return { confVersion: toId(confVersion, 'conf_version'), version: toId(version, 'version') };
}

export function toOperatorsRequest({ ended, rangeId, limit }: admin.ListOperatorsRequest): OperatorsRequest {
  return {
    ended,
    rangeId: toOptionalId(rangeId, 'range_id'),
    limit: limit === 0 ? OPERATORS_DEFAULT : Math.min(limit, OPERATORS_MAX),
  };
}

export function toPause({ name, forMs }: admin.PauseSchedulerRequest): PauseSchedulerRequest {
  return { name, forMs: toDuration(forMs, 0) };
}

const DUTIES: ReadonlySet<string> = new Set<NodeDuty>([
  'serving',
  'draining',
  'maintenance',
  'decommissioning',
  'removed',
]);

export function toNodeDuty({ nodeId, duty, forMs }: admin.SetNodeDutyRequest): SetNodeDutyRequest {
  if (!isDuty(duty)) throw wrong(`duty: expected one of ${[...DUTIES].join(', ')}`);
  if (duty !== 'maintenance' && forMs !== 0n) throw wrong('for_ms belongs to maintenance only');
  return { nodeId: toId(nodeId, 'node_id'), duty, forMs: toDuration(forMs, duty === 'maintenance' ? 1 : 0) };
}

function isDuty(text: string): text is NodeDuty {
  return DUTIES.has(text);
}

export function toWhy(request: admin.WhyRequest): WhyRequest {
  const [rangeId, nodeId] = [toOptionalId(request.rangeId, 'range_id'), toOptionalId(request.nodeId, 'node_id')];
  if ((rangeId === 0) === (nodeId === 0)) throw wrong('expected either range_id or node_id');
  return { rangeId, nodeId };
}

function toDuration(ms: bigint, min: number): number {
  if (ms >= BigInt(min) && ms <= BigInt(DURATION_MAX_MS)) return Number(ms);
  throw wrong(`for_ms: expected a number from ${min} to ${DURATION_MAX_MS}`);
}

export function fromOperator({ operatorId, steps, ageMs, endedMs, ...operator }: OperatorInfo): admin.Operator {
  const times = { ageMs: Math.floor(ageMs), endedMs: Math.floor(endedMs) };
  return { ...operator, ...times, id: operatorId, steps: [...steps] };
}

export function fromSchedulers(schedulers: readonly SchedulerInfo[]): admin.Scheduler[] {
  return schedulers.map(({ settings, pausedMs, ...scheduler }) => ({
    ...scheduler,
    pausedMs: Math.floor(pausedMs),
    settings: [...settings],
  }));
}

export function fromRebalance({ changes, schedulers }: RebalanceReply): admin.RebalanceResponse {
  return {
    changes: changes.map(({ steps, ...change }) => ({ ...change, steps: [...steps] })),
    schedulers: fromSchedulers(schedulers),
  };
}

function wrong(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
