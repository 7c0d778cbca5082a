export { type CoverageFault, coverageFaults } from './cluster-check.ts';
export {
  ClusterModel,
  type Liveness,
  type NodeDuty,
  type NodeInfo,
  type NodeTotals,
  type NodeView,
  type RangeInfo,
  type ReplicaProgress,
} from './cluster-model.ts';
export type { Admission, Controller } from './controller.ts';
export type { OperatorKind, OperatorRecord, OperatorStatus, Plan } from './operator.ts';
export type { Verdict } from './range-check.ts';
export { SchedulingDirector } from './range-director.ts';
export * from './requests.ts';
export type { SchedulerStatus } from './schedulers/scheduler-set.ts';
export { Scheduling, type SchedulingDeps } from './scheduling.ts';
export { DEFAULT_SETTINGS, type Settings } from './settings.ts';
export { describeStep, type Instruction, type Step } from './step.ts';
export { whyNode, whyRange } from './why.ts';
