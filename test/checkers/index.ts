export { checkAppliedOnce } from './applied-once.ts';
export {
  fromJsonLines,
  type HistoryRecord,
  HistoryRecorder,
  type Op,
  type OpenRequest,
  partitionByKey,
  type Request,
  toJsonLines,
  type Value,
} from './history.ts';
export { type CheckOptions, checkLinearizable, type Verdict } from './linearizability.ts';
export {
  createAppendModel,
  type ListNode,
  type LockModelState,
  lockModel,
  type Model,
  registerModel,
} from './models.ts';
