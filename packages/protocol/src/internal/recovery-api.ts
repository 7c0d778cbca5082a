import { bool, field, list, optional, struct, uint } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { Epoch, RangeDescriptor } from './descriptor.ts';

/**
 * Recovery from the loss of a majority: the surviving nodes report what they hold, and one replica of each group goes
 * on alone (raft/core/forced.ts; docs/decisions/0031-life-after-a-lost-majority.md).
 */

/** The group of the masters, among groups of ranges. */
export const MASTERS = 1;

/** A node's replica of one group: of a range, or of the masters. */
export const HeldGroup = struct('group that a node holds', {
  groupId: field(uint, 'The id of the range, or 1: the masters.'),
  replicaId: field(uint, 'The replica of the node.'),
  range: field(optional(RangeDescriptor), 'The range as the replica has it; absent for the masters.'),
  voters: field(list(uint), 'The nodes whose replicas vote, as the replica knows them.'),
  votersOutgoing: field(list(uint), 'The outgoing voters of a joint configuration.'),
  lastTerm: field(uint, 'The term of the last entry of its log.'),
  lastIndex: field(uint, 'The index of the last entry of its log.'),
  led: field(bool, 'It leads, or has heard a leader within two election timeouts.'),
});
export interface HeldGroup extends Infer<typeof HeldGroup> {}

export const NodeGroups = struct('groups of a node', {
  nodeId: field(uint, 'The node that answers.'),
  groups: field(list(HeldGroup), 'The groups that it has replicas of.'),
});
export interface NodeGroups extends Infer<typeof NodeGroups> {}

/** Makes a replica the only one of its group, if it has not changed since it was seen. Answered when that has begun. */
export const GoOnAloneRequest = struct('request to go on alone', {
  groupId: field(uint, 'The group.'),
  replicaId: field(uint, 'The replica that continues.'),
  lastTerm: field(uint, 'The term of its last entry when it was seen.'),
  lastIndex: field(uint, 'The index of its last entry when it was seen.'),
  epoch: field(Epoch, 'The latest epoch of the range that any surviving node knows.'),
});
export interface GoOnAloneRequest extends Infer<typeof GoOnAloneRequest> {}

/** Nodes that are dead for good: none of them is taken back, and their replicas are given up. */
export const StrikeOffRequest = struct('dead nodes', {
  nodeIds: field(list(uint), 'The nodes that are dead for good.'),
});
export interface StrikeOffRequest extends Infer<typeof StrikeOffRequest> {}
