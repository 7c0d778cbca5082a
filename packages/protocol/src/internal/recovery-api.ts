import type { Epoch, RangeDescriptor } from './descriptor.ts';

/**
 * Getting over the loss of a majority: who is left tells what it holds, and of each group one replica goes on alone
 * (raft/core/forced.ts; docs/decisions/0031-life-after-a-lost-majority.md).
 */

/** The group of the masters, among groups of ranges. */
export const MASTERS = 1;

/** What a node holds of one group: of a range, or of the masters. */
export interface HeldGroup {
  /** The id of the range, or `MASTERS`. */
  readonly groupId: number;
  readonly replicaId: number;
  /** As the replica has it; undefined for the masters. */
  readonly range: RangeDescriptor | undefined;
  /** The nodes whose replicas vote, as the replica knows them; `votersOutgoing` of a joint configuration. */
  readonly voters: readonly number[];
  readonly votersOutgoing: readonly number[];
  /** The last entry of its log: how much it holds. */
  readonly lastTerm: number;
  readonly lastIndex: number;
  /** It leads, or has heard a leader within two election timeouts. */
  readonly led: boolean;
}

export interface NodeGroups {
  readonly nodeId: number;
  readonly groups: readonly HeldGroup[];
}

/** Has a replica go on as the only one of its group, if it is still as it was seen. Answered when that has begun. */
export interface GoOnAloneRequest {
  readonly groupId: number;
  readonly replicaId: number;
  readonly lastTerm: number;
  readonly lastIndex: number;
  /** The latest epoch of the range that anybody who is left knows. */
  readonly epoch: Epoch;
}

/** Nodes that are dead for good: none of them is taken back, and their replicas are given up. */
export interface StrikeOffRequest {
  readonly nodeIds: readonly number[];
}
