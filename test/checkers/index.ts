export { checkAppliedOnce } from './applied-once.ts';
export { type Check, type Finding, NOTHING, runCheck, violation } from './check.ts';
export {
  type HistoryRecord,
  HistoryRecorder,
  type Op,
  type OpenRequest,
  partitionByKey,
  type Request,
  type Value,
} from './history.ts';
export { type AnyRecord, fromJsonLines, readJsonLines, toJsonLines } from './json-lines.ts';

export { checkLinearizable } from './linearizability.ts';
export { lockModel } from './lock-model.ts';
export { createAppendModel, type Model, registerModel } from './models.ts';
export { BarrierCheck, type BarrierEvent } from './online/barrier.ts';
export { CounterCheck, type CounterEvent } from './online/counter.ts';
export { ElectionCheck, type ElectionEvent, type Told } from './online/election.ts';

export { LapseCheck, type LapseEvent } from './online/lapse.ts';
export { LeaseCheck, type LeaseEvent } from './online/lease.ts';
export { LockCheck, type LockEvent, type LockMode } from './online/lock.ts';
export { LockStoryCheck, plain, type StoryEvent } from './online/lock-story.ts';
export { MirrorCheck, type MirrorEvent } from './online/mirror.ts';
export { type Change, WatchCheck, type WatchCheckOptions, type WatchEvent, type WatchSpan } from './online/watch.ts';
export {
  type AnomalyType,
  checkTransactions,
} from './txn/check.ts';
export { isTxn, type OpenTxn, type TxnOp, type TxnRecord, TxnRecorder } from './txn/history.ts';
