import { unreachable } from '@remora/base';
import {
  type CancelOperatorRequest,
  OPERATORS_MAX,
  type OperatorInfo,
  type OperatorsRequest,
  type PauseSchedulerRequest,
  type PlannedChange,
  type RangeChange,
  type RebalanceReply,
  type RebalanceRequest,
  type ScatterReply,
  type ScatterRequest,
  type SchedulerInfo,
  type SetNodeDutyRequest,
  type SteerRangeRequest,
  type WhyReply,
  type WhyRequest,
} from '../steering-api.ts';
import { asBool, asBytes, asCount, asFields, asList, asMs, asText, invalid, wireWords } from './check.ts';
import { decodeEpoch, encodeEpoch } from './descriptor.ts';

const CHANGE = { move: 0, addReplica: 1, removeReplica: 2, split: 3, merge: 4 } as const;
export const NODE_DUTIES = wireWords('duty of a node', [
  'serving',
  'draining',
  'maintenance',
  'decommissioning',
  'removed',
]);

function encodeChange(change: RangeChange): unknown[] {
  const tag = CHANGE[change.type];
  switch (change.type) {
    case 'move':
      return [tag, change.from, change.to];
    case 'addReplica':
    case 'removeReplica':
      return [tag, change.nodeId];
    case 'split':
      return [tag, change.at ?? null];
    case 'merge':
      return [tag, change.source];
    default:
      return unreachable(change);
  }
}

function decodeChange(raw: unknown): RangeChange {
  if (!Array.isArray(raw)) throw invalid('change of a range');
  const f = asFields(raw, raw[0] === CHANGE.move ? 3 : 2, 'change of a range');
  switch (f[0]) {
    case CHANGE.move:
      return { type: 'move', from: asCount(f[1], 'from'), to: asCount(f[2], 'to') };
    case CHANGE.addReplica:
      return { type: 'addReplica', nodeId: asCount(f[1], 'nodeId') };
    case CHANGE.removeReplica:
      return { type: 'removeReplica', nodeId: asCount(f[1], 'nodeId') };
    case CHANGE.split:
      return { type: 'split', at: f[1] === null ? undefined : asBytes(f[1], 'at') };
    case CHANGE.merge:
      return { type: 'merge', source: asCount(f[1], 'source') };
    default:
      throw invalid('change of a range');
  }
}

export function encodeSteerRange({ rangeId, epoch, change }: SteerRangeRequest): unknown[] {
  return [rangeId, encodeEpoch(epoch), encodeChange(change)];
}

export function decodeSteerRange(raw: unknown): SteerRangeRequest {
  const f = asFields(raw, 3, 'steering of a range');
  return { rangeId: asCount(f[0], 'rangeId'), epoch: decodeEpoch(f[1]), change: decodeChange(f[2]) };
}

export function encodeOperator(operator: OperatorInfo): unknown[] {
  const { operatorId, rangeId, kind, status, reason, steps, step, ageMs, endedMs, outcome } = operator;
  return [operatorId, rangeId, kind, status, reason, steps, step, ageMs, endedMs, outcome];
}

export function decodeOperator(raw: unknown): OperatorInfo {
  const f = asFields(raw, 10, 'operator');
  return {
    operatorId: asCount(f[0], 'operatorId'),
    rangeId: asCount(f[1], 'rangeId'),
    kind: asText(f[2], 'kind'),
    status: asText(f[3], 'status'),
    reason: asText(f[4], 'reason'),
    steps: asTexts(f[5], 'steps'),
    step: asCount(f[6], 'step'),
    ageMs: asMs(f[7], 'ageMs'),
    endedMs: asMs(f[8], 'endedMs'),
    outcome: asText(f[9], 'outcome'),
  };
}

export function encodeOperators(operators: readonly OperatorInfo[]): unknown[] {
  return operators.map(encodeOperator);
}

export function decodeOperators(raw: unknown): readonly OperatorInfo[] {
  return asList(raw, 'operators', decodeOperator);
}

export function encodeOperatorsRequest({ ended, rangeId, limit }: OperatorsRequest): unknown[] {
  return [ended, rangeId, limit];
}

export function decodeOperatorsRequest(raw: unknown): OperatorsRequest {
  const f = asFields(raw, 3, 'request for operators');
  const limit = asCount(f[2], 'limit');
  if (limit === 0 || limit > OPERATORS_MAX) throw invalid('limit');
  return { ended: asBool(f[0], 'ended'), rangeId: asCount(f[1], 'rangeId'), limit };
}

export function encodeCancelOperator({ operatorId }: CancelOperatorRequest): unknown[] {
  return [operatorId];
}

export function decodeCancelOperator(raw: unknown): CancelOperatorRequest {
  return { operatorId: asCount(asFields(raw, 1, 'cancellation')[0], 'operatorId') };
}

export function encodeScatter({ start, end }: ScatterRequest): unknown[] {
  return [start, end];
}

export function decodeScatter(raw: unknown): ScatterRequest {
  const f = asFields(raw, 2, 'scatter');
  return { start: asBytes(f[0], 'start'), end: asBytes(f[1], 'end') };
}

export function encodeScatterReply({ ranges }: ScatterReply): unknown[] {
  return [ranges];
}

export function decodeScatterReply(raw: unknown): ScatterReply {
  return { ranges: asCount(asFields(raw, 1, 'scatter')[0], 'ranges') };
}

export function encodeRebalance({ dryRun }: RebalanceRequest): unknown[] {
  return [dryRun];
}

export function decodeRebalance(raw: unknown): RebalanceRequest {
  return { dryRun: asBool(asFields(raw, 1, 'rebalance')[0], 'dryRun') };
}

function encodePlanned({ rangeId, kind, reason, steps }: PlannedChange): unknown[] {
  return [rangeId, kind, reason, steps];
}

function decodePlanned(raw: unknown): PlannedChange {
  const f = asFields(raw, 4, 'planned change');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    kind: asText(f[1], 'kind'),
    reason: asText(f[2], 'reason'),
    steps: asTexts(f[3], 'steps'),
  };
}

export function encodeRebalanceReply({ changes, schedulers }: RebalanceReply): unknown[] {
  return [changes.map(encodePlanned), encodeSchedulers(schedulers)];
}

export function decodeRebalanceReply(raw: unknown): RebalanceReply {
  const f = asFields(raw, 2, 'rebalance');
  return { changes: asList(f[0], 'changes', decodePlanned), schedulers: decodeSchedulers(f[1]) };
}

export function encodeSchedulers(schedulers: readonly SchedulerInfo[]): unknown[] {
  return schedulers.map(({ name, description, pausedMs, last, settings }) => [
    name,
    description,
    pausedMs,
    last,
    settings,
  ]);
}

export function decodeSchedulers(raw: unknown): readonly SchedulerInfo[] {
  return asList(raw, 'schedulers', (item) => {
    const f = asFields(item, 5, 'scheduler');
    return {
      name: asText(f[0], 'name'),
      description: asText(f[1], 'description'),
      pausedMs: asMs(f[2], 'pausedMs'),
      last: asText(f[3], 'last'),
      settings: asTexts(f[4], 'settings'),
    };
  });
}

export function encodePauseScheduler({ name, forMs }: PauseSchedulerRequest): unknown[] {
  return [name, forMs];
}

export function decodePauseScheduler(raw: unknown): PauseSchedulerRequest {
  const f = asFields(raw, 2, 'pause of a scheduler');
  return { name: asText(f[0], 'name'), forMs: asCount(f[1], 'forMs') };
}

export function encodeSetNodeDuty({ nodeId, duty, forMs }: SetNodeDutyRequest): unknown[] {
  return [nodeId, NODE_DUTIES.encode(duty), forMs];
}

export function decodeSetNodeDuty(raw: unknown): SetNodeDutyRequest {
  const f = asFields(raw, 3, 'change of duty');
  return { nodeId: asCount(f[0], 'nodeId'), duty: NODE_DUTIES.decode(f[1]), forMs: asCount(f[2], 'forMs') };
}

export function encodeWhy({ rangeId, nodeId }: WhyRequest): unknown[] {
  return [rangeId, nodeId];
}

export function decodeWhy(raw: unknown): WhyRequest {
  const f = asFields(raw, 2, 'why');
  return { rangeId: asCount(f[0], 'rangeId'), nodeId: asCount(f[1], 'nodeId') };
}

export function encodeWhyReply({ lines }: WhyReply): unknown[] {
  return [lines];
}

export function decodeWhyReply(raw: unknown): WhyReply {
  return { lines: asTexts(asFields(raw, 1, 'why')[0], 'lines') };
}

function asTexts(raw: unknown, what: string): readonly string[] {
  return asList(raw, what, (item) => asText(item, what));
}
