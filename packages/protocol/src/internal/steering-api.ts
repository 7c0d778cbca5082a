import type { Bytes } from '@remora/base';
import type { Epoch } from './descriptor.ts';

/**
 * What operators of a cluster ask the master's leader to do, and what it tells them of its own doings. An answer says that
 * something was begun; what came of it is seen in `OperatorInfo`.
 *
 * ST1. All of it may be asked twice, as answers get lost: a change of a range names the epoch that it is meant for, and
 *      asking again for what is under way, or done, since that epoch is answered with the operator that does it.
 */
export type RangeChange =
  | { readonly type: 'move'; readonly from: number; readonly to: number }
  | { readonly type: 'addReplica'; readonly nodeId: number }
  | { readonly type: 'removeReplica'; readonly nodeId: number }
  /** At a routing key, which becomes the first one of the new range; undefined: in the middle. */
  | { readonly type: 'split'; readonly at: Bytes | undefined }
  /** The next range, `source`, ends, and this one takes its keys. */
  | { readonly type: 'merge'; readonly source: number };

export interface SteerRangeRequest {
  readonly rangeId: number;
  /** Of the descriptor that the asker saw. */
  readonly epoch: Epoch;
  readonly change: RangeChange;
}

/** Something that is being done to a range, or was: as its steps, in words. */
export interface OperatorInfo {
  readonly operatorId: number;
  readonly rangeId: number;
  /** What it is for: `repair`, `admin`, `balanceLeaders`, … */
  readonly kind: string;
  /** `created` or `started` while it is under way, then `success`, `failed`, `cancelled`, `timedOut` or `replaced`. */
  readonly status: string;
  /** Why it was begun. */
  readonly reason: string;
  readonly steps: readonly string[];
  /** Steps that are done. */
  readonly step: number;
  /** Since it was admitted, in ms. */
  readonly ageMs: number;
  /** Since it ended, in ms; -1: it has not. */
  readonly endedMs: number;
  /** What it waits for, or why it ended so. */
  readonly outcome: string;
}

/** Operators under way, oldest first; or those that ended under this leader of the masters, newest first. */
export interface OperatorsRequest {
  readonly ended: boolean;
  /** Only those of this range; 0: all. */
  readonly rangeId: number;
  /** From 1 to `OPERATORS_MAX`. */
  readonly limit: number;
}

/** Most operators in one answer. */
export const OPERATORS_MAX = 1_000;

export interface CancelOperatorRequest {
  readonly operatorId: number;
}

/** Ranges that have keys from `start` to before `end` (empty: unbounded) are spread over the nodes, as one group. */
export interface ScatterRequest {
  readonly start: Bytes;
  readonly end: Bytes;
}

export interface ScatterReply {
  readonly ranges: number;
}

export interface RebalanceRequest {
  /** Only tells what would be begun now. */
  readonly dryRun: boolean;
}

/** What a scheduler or a checker wants done. */
export interface PlannedChange {
  readonly rangeId: number;
  readonly kind: string;
  readonly reason: string;
  readonly steps: readonly string[];
}

export interface RebalanceReply {
  /** Begun, or of a dry run what would be. */
  readonly changes: readonly PlannedChange[];
  /** What each scheduler says for itself. */
  readonly schedulers: readonly SchedulerInfo[];
}

export interface SchedulerInfo {
  readonly name: string;
  readonly description: string;
  /** Left of its pause, in ms; -1: it runs. */
  readonly pausedMs: number;
  /** What it said when it ran last: why it does nothing more. */
  readonly last: string;
  /** Names of the cluster's settings that it goes by. */
  readonly settings: readonly string[];
}

export interface PauseSchedulerRequest {
  readonly name: string;
  /** From now on, in ms; 0: it runs again. */
  readonly forMs: number;
}

/**
 * What a node is there for, as its operators want it.
 *  - `serving`: takes replicas and leaders.
 *  - `draining`: gives its leaders away and takes nothing new; keeps its replicas.
 *  - `maintenance`: as `draining`; until the end of the window its silence counts as planned.
 *  - `decommissioning`: gives everything away.
 *  - `removed`: gone for good; its replicas count as lost.
 */
export type NodeDuty = 'serving' | 'draining' | 'maintenance' | 'decommissioning' | 'removed';

export interface SetNodeDutyRequest {
  readonly nodeId: number;
  readonly duty: NodeDuty;
  /** How long the window of `maintenance` is, in ms; 0 for any other duty. */
  readonly forMs: number;
}

/** Of one of them; the other id is 0. */
export interface WhyRequest {
  readonly rangeId: number;
  readonly nodeId: number;
}

export interface WhyReply {
  /** One statement each. */
  readonly lines: readonly string[];
}
