import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { GoOnAloneRequest, HeldGroup, NodeGroups } from '../recovery-api.ts';
import { masterStrikeOff, nodeGoOnAlone, nodeGroups } from '../recovery-methods.ts';
import { RANGE } from './test-samples.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const MASTERS: HeldGroup = {
  ...{ groupId: 1, replicaId: 3, range: undefined, voters: [1, 2, 3], votersOutgoing: [] },
  ...{ lastTerm: 4, lastIndex: 99, led: false },
};
const GROUPS: NodeGroups = {
  nodeId: 3,
  groups: [MASTERS, { ...MASTERS, groupId: 2, replicaId: 1_003, range: RANGE, votersOutgoing: [1, 4], led: true }],
};
const ALONE: GoOnAloneRequest = {
  ...{ groupId: 2, replicaId: 1_003, lastTerm: 4, lastIndex: 99, epoch: { confVersion: 7, version: 2 } },
};

test('what is said about lost majorities survives the way, and its schema is this one', () => {
  const groups = packVersioned(1, nodeGroups.encodeReply(GROUPS));
  const alone = packVersioned(1, nodeGoOnAlone.encodeRequest(ALONE));
  const struck = packVersioned(1, masterStrikeOff.encodeRequest({ nodeIds: [4, 5] }));
  const decoded = nodeGroups.decodeReply(unpackVersioned(1, groups, 'test'));
  expect(packVersioned(1, nodeGroups.encodeReply(decoded))).toEqual(groups);
  expect(nodeGoOnAlone.decodeRequest(unpackVersioned(1, alone, 'test'))).toEqual(ALONE);
  expect(masterStrikeOff.decodeRequest(unpackVersioned(1, struck, 'test'))).toEqual({ nodeIds: [4, 5] });
  const hash = createHash('sha256')
    .update(Buffer.concat([groups, alone, struck]))
    .digest('hex');
  expect(hash.slice(0, 16)).toBe('02192dea129aca97');
});
