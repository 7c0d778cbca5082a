import {
  bool,
  bytes,
  field,
  list,
  ms,
  optional,
  struct,
  text,
  uint,
  uintBetween,
  union,
  variant,
  words,
} from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { Epoch } from './descriptor.ts';

/**
 * What operators of a cluster ask the masters' leader to do, and what it reports of its own work. An answer says that
 * something was begun; `OperatorInfo` shows how it ends.
 *
 * ST1. Every request may be repeated, as answers get lost: a change of a range names the epoch that it is meant for.
 *      Asking again for what is in progress, or done, since that epoch returns the operator that does it.
 */
export const RangeChange = union('change of a range', 'type', {
  move: variant(0, {
    from: field(uint, 'The node that gives its replica away.'),
    to: field(uint, 'The node that takes it.'),
  }),
  addReplica: variant(1, { nodeId: field(uint, 'The node that gets a replica.') }),
  removeReplica: variant(2, { nodeId: field(uint, 'The node that loses its replica.') }),
  split: variant(3, {
    at: field(optional(bytes), 'A routing key, which becomes the first one of the new range; absent: the middle.'),
  }),
  merge: variant(4, { source: field(uint, 'The next range. It ends, and this one takes its keys.') }),
});
export type RangeChange = Infer<typeof RangeChange>;

export const SteerRangeRequest = struct('change request', {
  rangeId: field(uint, 'The range to change.'),
  epoch: field(Epoch, 'The epoch of the descriptor that the caller saw.'),
  change: field(RangeChange, 'What to do.'),
});
export interface SteerRangeRequest extends Infer<typeof SteerRangeRequest> {}

/** A change of a range in progress, or one that has ended, as its steps in words. */
export const OperatorInfo = struct('operator', {
  operatorId: field(uint, 'The id of the operator.'),
  rangeId: field(uint, 'The range that it changes.'),
  kind: field(text, 'Its purpose: `repair`, `admin`, `balanceLeaders`, …'),
  status: field(
    text,
    '`created` or `started` while it is in progress, then `success`, `failed`, `cancelled`, `timedOut` or `replaced`.',
  ),
  reason: field(text, 'Why it was begun.'),
  steps: field(list(text), 'Its steps.'),
  step: field(uint, 'How many steps are done.'),
  ageMs: field(ms, 'Milliseconds since it was admitted.'),
  endedMs: field(ms, 'Milliseconds since it ended; -1: it is in progress.'),
  outcome: field(text, 'The reason for its wait, or for its end.'),
});
export interface OperatorInfo extends Infer<typeof OperatorInfo> {}

/** Most operators in one answer. */
export const OPERATORS_MAX = 1_000;

/** Operators in progress, oldest first; or those that ended under this leader of the masters, newest first. */
export const OperatorsRequest = struct('request for operators', {
  ended: field(bool, 'Lists those that have ended instead of those in progress.'),
  rangeId: field(uint, 'Only those of this range; 0: all.'),
  limit: field(uintBetween(1, OPERATORS_MAX), 'The most operators to return.'),
});
export interface OperatorsRequest extends Infer<typeof OperatorsRequest> {}

export const CancelOperatorRequest = struct('cancellation', {
  operatorId: field(uint, 'The operator to cancel.'),
});
export interface CancelOperatorRequest extends Infer<typeof CancelOperatorRequest> {}

/** Spreads the ranges that have keys of the span over the nodes, as one group. */
export const ScatterRequest = struct('request to scatter', {
  start: field(bytes, 'The first routing key.'),
  end: field(bytes, 'The routing key behind the last; empty: unbounded.'),
});
export interface ScatterRequest extends Infer<typeof ScatterRequest> {}

export const ScatterReply = struct('scattered ranges', { ranges: field(uint, 'How many ranges are spread.') });
export interface ScatterReply extends Infer<typeof ScatterReply> {}

export const RebalanceRequest = struct('request to rebalance', {
  dryRun: field(bool, 'Only reports what would be begun now.'),
});
export interface RebalanceRequest extends Infer<typeof RebalanceRequest> {}

/** What a scheduler or a checker proposes. */
export const PlannedChange = struct('planned change', {
  rangeId: field(uint, 'The range that it changes.'),
  kind: field(text, 'Its purpose, as of an operator.'),
  reason: field(text, 'Why it is proposed.'),
  steps: field(list(text), 'Its steps.'),
});
export interface PlannedChange extends Infer<typeof PlannedChange> {}

export const SchedulerInfo = struct('scheduler', {
  name: field(text, 'The name of the scheduler.'),
  description: field(text, 'What it does.'),
  pausedMs: field(ms, 'Milliseconds until its pause ends; -1: it runs.'),
  last: field(text, 'What it reported when it last ran: why it does nothing more.'),
  settings: field(list(text), 'The settings of the cluster that it reads.'),
});
export interface SchedulerInfo extends Infer<typeof SchedulerInfo> {}

export const RebalanceReply = struct('rebalanced ranges', {
  changes: field(list(PlannedChange), 'The changes that were begun, or for a dry run would be.'),
  schedulers: field(list(SchedulerInfo), 'What each scheduler reports.'),
});
export interface RebalanceReply extends Infer<typeof RebalanceReply> {}

export const PauseSchedulerRequest = struct('pause of a scheduler', {
  name: field(text, 'The scheduler to pause.'),
  forMs: field(uint, 'Milliseconds from now on; 0: it runs again.'),
});
export interface PauseSchedulerRequest extends Infer<typeof PauseSchedulerRequest> {}

/**
 * What operators want of a node.
 *  - `serving`: takes replicas and leaders.
 *  - `draining`: gives its leaders away and takes nothing new; keeps its replicas.
 *  - `maintenance`: as `draining`; until the end of the window its silence counts as planned.
 *  - `decommissioning`: gives everything away.
 *  - `removed`: gone for good; its replicas count as lost.
 */
export const NodeDuty = words('duty of a node', ['serving', 'draining', 'maintenance', 'decommissioning', 'removed']);
export type NodeDuty = Infer<typeof NodeDuty>;

export const SetNodeDutyRequest = struct('change of duty', {
  nodeId: field(uint, 'The node.'),
  duty: field(NodeDuty, 'Its new duty.'),
  forMs: field(uint, 'How long the window of `maintenance` is, in milliseconds; 0 for any other duty.'),
});
export interface SetNodeDutyRequest extends Infer<typeof SetNodeDutyRequest> {}

/** Asks about a range or a node; the other id is 0. */
export const WhyRequest = struct('question why', {
  rangeId: field(uint, 'The range; 0: the question is about a node.'),
  nodeId: field(uint, 'The node; 0: the question is about a range.'),
});
export interface WhyRequest extends Infer<typeof WhyRequest> {}

export const WhyReply = struct('reasons', { lines: field(list(text), 'One statement each.') });
export interface WhyReply extends Infer<typeof WhyReply> {}
