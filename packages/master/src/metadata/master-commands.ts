import type { Bytes } from '@remora/base';
import type { NodeDescriptor, NodeDuty, RangeDescriptor } from '@remora/protocol';
import type { AskedSplit } from '../ranges/range-registry.ts';

/**
 * Changes of the cluster's metadata, as they are replicated through the log of the master group.
 */
export type MasterCommand =
  /** `nodeId` 0: allocate one. Registering again with the same incarnation updates addresses and roles. */
  | { readonly type: 'registerNode'; readonly descriptor: NodeDescriptor }
  /** Creates the first range, over the whole key space, with voters on these nodes; refused when a range exists. */
  | { readonly type: 'bootstrapRange'; readonly nodeIds: readonly number[] }
  /**
   * Creates several at once, in the order of their keys; the first begins before all keys. Refused when there are any.
   */
  | { readonly type: 'bootstrapRanges'; readonly ranges: readonly FirstRangePlan[] }
  /** A range says what its membership is now. Nothing changes if the master knows that, or what came later. */
  | { readonly type: 'changeRange'; readonly descriptor: RangeDescriptor }
  /** The same of all that there is to a range: it was split or merged, or a split has made it. */
  | { readonly type: 'describeRange'; readonly descriptor: RangeDescriptor }
  /** Gives out the ids of a split; the same ones for the same range and epoch. `byHand`: people chose where it is. */
  | { readonly type: 'askSplit'; readonly descriptor: RangeDescriptor; readonly byHand: boolean }
  /** `untilMs`: the end of a maintenance window, by the wall clock; 0 for every other duty. */
  | { readonly type: 'setDuty'; readonly nodeId: number; readonly duty: NodeDuty; readonly untilMs: number }
  /** Until then, by the wall clock, a scheduler rests; 0: no longer. */
  | { readonly type: 'pauseScheduler'; readonly name: string; readonly untilMs: number }
  /** Replica ids that are given to nobody else from now on. */
  | { readonly type: 'allocateReplicas'; readonly count: number }
  /** Revisions up to this one may be given out; nothing changes if higher ones may already. */
  | { readonly type: 'liftRevisions'; readonly upTo: number }
  /**
   * Sets one of the cluster's settings; refused unless `expected` is the version of the settings. Empty: the default.
   */
  | { readonly type: 'changeSetting'; readonly expected: number; readonly name: string; readonly text: string };

/** One of the ranges that a cluster begins with. */
export interface FirstRangePlan {
  /** A routing key. */
  readonly start: Bytes;
  /** Each gets a voter. */
  readonly nodeIds: readonly number[];
}

export type MasterResult =
  | { readonly type: 'registerNode'; readonly nodeId: number }
  | { readonly type: 'bootstrapRange'; readonly rangeId: number }
  | { readonly type: 'bootstrapRanges' }
  | { readonly type: 'changeRange' }
  | { readonly type: 'describeRange' }
  | { readonly type: 'askSplit'; readonly asked: AskedSplit }
  | { readonly type: 'setDuty' }
  | { readonly type: 'pauseScheduler' }
  /** The first of the ids; the others follow it. */
  | { readonly type: 'allocateReplicas'; readonly first: number }
  | { readonly type: 'liftRevisions' }
  | { readonly type: 'changeSetting' };
