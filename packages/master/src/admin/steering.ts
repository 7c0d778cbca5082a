import { ServiceError } from '@remora/base';
import {
  type Done,
  type Method,
  masterCancelOperator,
  masterOperators,
  masterPauseScheduler,
  masterRebalance,
  masterScatter,
  masterSchedulers,
  masterSetNodeDuty,
  masterSteerRange,
  masterWhy,
  type OperatorInfo,
  type OperatorsRequest,
  type PauseSchedulerRequest,
  type RebalanceReply,
  type RebalanceRequest,
  type RpcRegistry,
  type ScatterReply,
  type ScatterRequest,
  type SchedulerInfo,
  type SetNodeDutyRequest,
  type SteerRangeRequest,
  type WhyReply,
  type WhyRequest,
} from '@remora/protocol';

/**
 * The requests that administrators may send to the scheduling. Each throws a `ServiceError` if it is impossible, with a
 * message that says what would be possible. Called only on the masters' leader.
 */
export interface SteeringActions {
  steerRange(request: SteerRangeRequest): OperatorInfo;
  scatter(request: ScatterRequest): ScatterReply;
  rebalance(request: RebalanceRequest): RebalanceReply;
  operators(request: OperatorsRequest): readonly OperatorInfo[];
  cancelOperator(operatorId: number): OperatorInfo;
  schedulers(): readonly SchedulerInfo[];
  why(request: WhyRequest): WhyReply;
  /** These answer once the change is replicated. */
  pauseScheduler(request: PauseSchedulerRequest, done: Done<readonly SchedulerInfo[]>): void;
  setNodeDuty(request: SetNodeDutyRequest, done: Done<undefined>): void;
}

/** Calls back with the actions once this master is known to lead now (M6 of master.ts), or with the error. */
export type Steering = (act: (actions: SteeringActions | ServiceError) => void) => void;

/** Serves the methods with which operators control the scheduling. */
export function registerSteering(registry: RpcRegistry, steering: Steering): void {
  answer(registry, masterSteerRange, steering, (actions, request) => actions.steerRange(request));
  answer(registry, masterScatter, steering, (actions, request) => actions.scatter(request));
  answer(registry, masterRebalance, steering, (actions, request) => actions.rebalance(request));
  answer(registry, masterOperators, steering, (actions, request) => actions.operators(request));
  answer(registry, masterCancelOperator, steering, (actions, request) => actions.cancelOperator(request.operatorId));
  answer(registry, masterSchedulers, steering, (actions) => actions.schedulers());
  answer(registry, masterWhy, steering, (actions, request) => actions.why(request));
  registry.handle(masterPauseScheduler, (request, _context, done) =>
    orRefused(done, steering, (actions) => actions.pauseScheduler(request, done)),
  );
  registry.handle(masterSetNodeDuty, (request, _context, done) =>
    orRefused(done, steering, (actions) => actions.setNodeDuty(request, done)),
  );
}

function answer<Request, Reply>(
  registry: RpcRegistry,
  method: Method<Request, Reply>,
  steering: Steering,
  act: (actions: SteeringActions, request: Request) => Reply,
): void {
  registry.handle(method, (request, _context, done) =>
    orRefused(done, steering, (actions) => done(undefined, act(actions, request))),
  );
}

function orRefused<Reply>(done: Done<Reply>, steering: Steering, act: (actions: SteeringActions) => void): void {
  steering((actions) => {
    if (actions instanceof ServiceError) return done(actions, undefined);
    try {
      act(actions);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      done(error, undefined);
    }
  });
}
