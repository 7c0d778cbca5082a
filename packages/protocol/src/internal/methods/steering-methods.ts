import { list, nothing } from '../../schema/kinds.ts';
import {
  CancelOperatorRequest,
  OperatorInfo,
  OperatorsRequest,
  PauseSchedulerRequest,
  RebalanceReply,
  RebalanceRequest,
  ScatterReply,
  ScatterRequest,
  SchedulerInfo,
  SetNodeDutyRequest,
  SteerRangeRequest,
  WhyReply,
  WhyRequest,
} from '../steering-api.ts';
import { rareMethod } from './rare-method.ts';

export const masterSteerRange = rareMethod('master.steerRange', {
  meaning: 'Begins a change of a range; INVALID_ARGUMENT says why it is not possible.',
  callers: 'nodes',
  request: SteerRangeRequest,
  reply: OperatorInfo,
});

export const masterScatter = rareMethod('master.scatter', {
  meaning: 'Spreads the ranges of a span over the nodes.',
  callers: 'nodes',
  request: ScatterRequest,
  reply: ScatterReply,
});

export const masterRebalance = rareMethod('master.rebalance', {
  meaning: 'Runs all schedulers now.',
  callers: 'nodes',
  request: RebalanceRequest,
  reply: RebalanceReply,
});

export const masterOperators = rareMethod('master.operators', {
  meaning: 'Lists changes of ranges.',
  callers: 'nodes',
  request: OperatorsRequest,
  reply: list(OperatorInfo),
});

export const masterCancelOperator = rareMethod('master.cancelOperator', {
  meaning: 'Cancels a change of a range; answered with the operator as it ended.',
  callers: 'nodes',
  request: CancelOperatorRequest,
  reply: OperatorInfo,
});

export const masterSchedulers = rareMethod('master.schedulers', {
  meaning: 'Lists the schedulers.',
  callers: 'nodes',
  request: nothing,
  reply: list(SchedulerInfo),
});

export const masterPauseScheduler = rareMethod('master.pauseScheduler', {
  meaning: 'Pauses a scheduler, or lets it run again; answered with all schedulers.',
  callers: 'nodes',
  request: PauseSchedulerRequest,
  reply: list(SchedulerInfo),
});

export const masterSetNodeDuty = rareMethod('master.setNodeDuty', {
  meaning: 'Changes the duty of a node; answered when the change is replicated.',
  callers: 'nodes',
  request: SetNodeDutyRequest,
  reply: nothing,
});

export const masterWhy = rareMethod('master.why', {
  meaning: 'Explains why a range or a node is where it is.',
  callers: 'nodes',
  request: WhyRequest,
  reply: WhyReply,
});
