import type { GoOnAloneRequest, HeldGroup, NodeGroups, StrikeOffRequest } from '../recovery-api.ts';
import { asBool, asCount, asFields, asList } from './check.ts';
import { decodeEpoch, decodeRangeDescriptor, encodeEpoch, encodeRangeDescriptor } from './descriptor.ts';

function asIds(raw: unknown, what: string): readonly number[] {
  return asList(raw, what, (id) => asCount(id, what));
}

function encodeHeldGroup(held: HeldGroup): unknown[] {
  const { groupId, replicaId, range, voters, votersOutgoing, lastTerm, lastIndex, led } = held;
  const descriptor = range === undefined ? null : encodeRangeDescriptor(range);
  return [groupId, replicaId, descriptor, voters, votersOutgoing, lastTerm, lastIndex, led];
}

function decodeHeldGroup(raw: unknown): HeldGroup {
  const f = asFields(raw, 8, 'group that a node holds');
  return {
    groupId: asCount(f[0], 'groupId'),
    replicaId: asCount(f[1], 'replicaId'),
    range: f[2] === null ? undefined : decodeRangeDescriptor(f[2]),
    voters: asIds(f[3], 'voters'),
    votersOutgoing: asIds(f[4], 'votersOutgoing'),
    lastTerm: asCount(f[5], 'lastTerm'),
    lastIndex: asCount(f[6], 'lastIndex'),
    led: asBool(f[7], 'led'),
  };
}

export function encodeNodeGroups({ nodeId, groups }: NodeGroups): unknown[] {
  return [nodeId, groups.map(encodeHeldGroup)];
}

export function decodeNodeGroups(raw: unknown): NodeGroups {
  const f = asFields(raw, 2, 'groups of a node');
  return { nodeId: asCount(f[0], 'nodeId'), groups: asList(f[1], 'groups', decodeHeldGroup) };
}

export function encodeGoOnAlone({ groupId, replicaId, lastTerm, lastIndex, epoch }: GoOnAloneRequest): unknown[] {
  return [groupId, replicaId, lastTerm, lastIndex, encodeEpoch(epoch)];
}

export function decodeGoOnAlone(raw: unknown): GoOnAloneRequest {
  const f = asFields(raw, 5, 'request to go on alone');
  return {
    groupId: asCount(f[0], 'groupId'),
    replicaId: asCount(f[1], 'replicaId'),
    lastTerm: asCount(f[2], 'lastTerm'),
    lastIndex: asCount(f[3], 'lastIndex'),
    epoch: decodeEpoch(f[4]),
  };
}

export function encodeStrikeOff({ nodeIds }: StrikeOffRequest): unknown[] {
  return [nodeIds];
}

export function decodeStrikeOff(raw: unknown): StrikeOffRequest {
  return { nodeIds: asIds(asFields(raw, 1, 'dead nodes')[0], 'nodeId') };
}
