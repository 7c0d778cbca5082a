import type { Method } from '../rpc/rpc.ts';
import {
  decodeCancelOperator,
  decodeOperator,
  decodeOperators,
  decodeOperatorsRequest,
  decodePauseScheduler,
  decodeRebalance,
  decodeRebalanceReply,
  decodeScatter,
  decodeScatterReply,
  decodeSchedulers,
  decodeSetNodeDuty,
  decodeSteerRange,
  decodeWhy,
  decodeWhyReply,
  encodeCancelOperator,
  encodeOperator,
  encodeOperators,
  encodeOperatorsRequest,
  encodePauseScheduler,
  encodeRebalance,
  encodeRebalanceReply,
  encodeScatter,
  encodeScatterReply,
  encodeSchedulers,
  encodeSetNodeDuty,
  encodeSteerRange,
  encodeWhy,
  encodeWhyReply,
} from './codec/steering.ts';
import type {
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
} from './steering-api.ts';

const NOTHING = { encode: (): null => null, decode: (): undefined => undefined };

/** Answered with the operator that does it. What is not possible is INVALID_ARGUMENT, with what would be right. */
export const masterSteerRange: Method<SteerRangeRequest, OperatorInfo> = {
  name: 'master.steerRange',
  callers: 'nodes',
  encodeRequest: encodeSteerRange,
  decodeRequest: decodeSteerRange,
  encodeReply: encodeOperator,
  decodeReply: decodeOperator,
};

export const masterScatter: Method<ScatterRequest, ScatterReply> = {
  name: 'master.scatter',
  callers: 'nodes',
  encodeRequest: encodeScatter,
  decodeRequest: decodeScatter,
  encodeReply: encodeScatterReply,
  decodeReply: decodeScatterReply,
};

export const masterRebalance: Method<RebalanceRequest, RebalanceReply> = {
  name: 'master.rebalance',
  callers: 'nodes',
  encodeRequest: encodeRebalance,
  decodeRequest: decodeRebalance,
  encodeReply: encodeRebalanceReply,
  decodeReply: decodeRebalanceReply,
};

export const masterOperators: Method<OperatorsRequest, readonly OperatorInfo[]> = {
  name: 'master.operators',
  callers: 'nodes',
  encodeRequest: encodeOperatorsRequest,
  decodeRequest: decodeOperatorsRequest,
  encodeReply: encodeOperators,
  decodeReply: decodeOperators,
};

/** Answered with the operator as it ended. */
export const masterCancelOperator: Method<CancelOperatorRequest, OperatorInfo> = {
  name: 'master.cancelOperator',
  callers: 'nodes',
  encodeRequest: encodeCancelOperator,
  decodeRequest: decodeCancelOperator,
  encodeReply: encodeOperator,
  decodeReply: decodeOperator,
};

export const masterSchedulers: Method<undefined, readonly SchedulerInfo[]> = {
  name: 'master.schedulers',
  callers: 'nodes',
  encodeRequest: NOTHING.encode,
  decodeRequest: NOTHING.decode,
  encodeReply: encodeSchedulers,
  decodeReply: decodeSchedulers,
};

export const masterPauseScheduler: Method<PauseSchedulerRequest, readonly SchedulerInfo[]> = {
  name: 'master.pauseScheduler',
  callers: 'nodes',
  encodeRequest: encodePauseScheduler,
  decodeRequest: decodePauseScheduler,
  encodeReply: encodeSchedulers,
  decodeReply: decodeSchedulers,
};

/** Answered when it is replicated. */
export const masterSetNodeDuty: Method<SetNodeDutyRequest, undefined> = {
  name: 'master.setNodeDuty',
  callers: 'nodes',
  encodeRequest: encodeSetNodeDuty,
  decodeRequest: decodeSetNodeDuty,
  encodeReply: NOTHING.encode,
  decodeReply: NOTHING.decode,
};

export const masterWhy: Method<WhyRequest, WhyReply> = {
  name: 'master.why',
  callers: 'nodes',
  encodeRequest: encodeWhy,
  decodeRequest: decodeWhy,
  encodeReply: encodeWhyReply,
  decodeReply: decodeWhyReply,
};
