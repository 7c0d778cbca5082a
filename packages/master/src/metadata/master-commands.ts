import type { FirstRoot } from '@remora/auth';
import type { Bytes, ClusterVersion } from '@remora/base';
import type { AuthChange, NodeDescriptor, NodeDuty, RangeDescriptor } from '@remora/protocol';
import type { AskedSplit } from '../ranges/range-registry.ts';
import type { EndedOperator } from './ended-operator.ts';

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
  /** A range's current membership. Changes nothing if the master knows it already, or knows a later one. */
  | { readonly type: 'changeRange'; readonly descriptor: RangeDescriptor }
  /** A range's whole descriptor: the range was split or merged, or a split has created it. */
  | { readonly type: 'describeRange'; readonly descriptor: RangeDescriptor }
  /** Allocates the ids of a split; the same ones for the same range and epoch. `byHand`: a person chose the place. */
  | { readonly type: 'askSplit'; readonly descriptor: RangeDescriptor; readonly byHand: boolean }
  /** `untilMs`: the end of a maintenance window, on the wall clock; 0 for every other duty. */
  | { readonly type: 'setDuty'; readonly nodeId: number; readonly duty: NodeDuty; readonly untilMs: number }
  /** Pauses a scheduler until that time on the wall clock; 0: ends the pause. */
  | { readonly type: 'pauseScheduler'; readonly name: string; readonly untilMs: number }
  /** Reserves replica ids that are never allocated otherwise. */
  | { readonly type: 'allocateReplicas'; readonly count: number }
  /** Allows revisions up to this one to be allocated; changes nothing if higher ones are allowed already. */
  | { readonly type: 'liftRevisions'; readonly upTo: number }
  /**
   * Sets one of the cluster's settings; refused unless `expected` is the current version of the settings. An empty text
   * restores the default.
   */
  | { readonly type: 'changeSetting'; readonly expected: number; readonly name: string; readonly text: string }
  /** Changes users, roles or permissions; refused as `AuthState` says. */
  | { readonly type: 'changeAuth'; readonly change: AuthChange }
  /** Founds a cluster with authentication; refused when a range exists. */
  | ({ readonly type: 'foundAuth' } & FirstRoot)
  /** Brings a version into force; refused if it is below the one in force. */
  | { readonly type: 'finalizeUpgrade'; readonly version: ClusterVersion }
  /** Remembers an operator that has ended. */
  | { readonly type: 'recordOperator'; readonly operator: EndedOperator };

/** One of a new cluster's first ranges. */
export interface FirstRangePlan {
  /** A routing key. */
  readonly start: Bytes;
  /** Each node gets a voter. */
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
  /** The first of the ids; the others follow without gaps. */
  | { readonly type: 'allocateReplicas'; readonly first: number }
  | { readonly type: 'liftRevisions' }
  | { readonly type: 'changeSetting' }
  /** The revision that the change has made, or found if it changed nothing. */
  | { readonly type: 'changeAuth'; readonly revision: number }
  | { readonly type: 'foundAuth' }
  | { readonly type: 'finalizeUpgrade' }
  | { readonly type: 'recordOperator' };
