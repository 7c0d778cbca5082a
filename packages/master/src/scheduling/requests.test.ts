import { describe, expect, test } from 'vitest';
import { nodeInfo, rangeInfo, upNodes, viewOf } from '../../test/support/scheduling-bed.ts';
import type { NodeInfo, RangeInfo } from './cluster-model.ts';
import {
  requestAdd,
  requestMerge,
  requestMove,
  requestRemove,
  requestSplit,
  requestTransfer,
  requireDecommissionable,
  requireMaintainable,
  requireRemovable,
} from './requests.ts';
import type { Settings } from './settings.ts';
import type { SchedulingView } from './view.ts';

interface Given {
  readonly odd?: readonly NodeInfo[];
  readonly ranges?: readonly RangeInfo[];
  readonly settings?: Partial<Settings>;
}

const THREE = rangeInfo(1, { voters: [1, 2, 3], start: '', end: 'm' });
const NEXT = rangeInfo(2, { voters: [3, 2, 1], start: 'm', end: '' });

function view({ odd = [], ranges = [THREE, NEXT], settings = {} }: Given = {}): SchedulingView {
  const nodes = upNodes(5).map((node) => odd.find(({ nodeId }) => nodeId === node.nodeId) ?? node);
  return viewOf({ nodes, ranges, settings });
}

const down = (nodeId: number): NodeInfo => nodeInfo(nodeId, { liveness: 'down' });

describe('what is possible becomes a plan', () => {
  const change = (promote: readonly number[], remove: readonly number[]) => ({ type: 'changeVoters', promote, remove });
  test.each([
    {
      name: 'a move',
      plan: requestMove(view(), 1, { from: 3, to: 4 }),
      steps: [{ type: 'addLearner', nodeId: 4 }, change([4], [3])],
    },
    {
      name: 'a move with another voter down',
      plan: requestMove(view({ odd: [down(2)] }), 1, { from: 3, to: 4 }),
      steps: [{ type: 'addLearner', nodeId: 4 }, change([4], [3])],
    },
    {
      name: 'a move of the leader',
      plan: requestMove(view(), 1, { from: 1, to: 4 }),
      steps: [{ type: 'addLearner', nodeId: 4 }, { type: 'transferLeader', nodeId: 2 }, change([4], [1])],
    },
    { name: 'a removal', plan: requestRemove(view(), 1, 3), steps: [change([], [3])] },
    { name: 'a transfer', plan: requestTransfer(view(), 1, 2), steps: [{ type: 'transferLeader', nodeId: 2 }] },
    {
      name: 'a split',
      plan: requestSplit(view(), 1, Buffer.from('c')),
      steps: [{ type: 'split', at: Buffer.from('c'), version: 1 }],
    },
    {
      name: 'a merge',
      plan: requestMerge(view(), 2, 1),
      steps: [{ type: 'merge', source: 2, version: 1, bytesMax: 0 }],
    },
    {
      name: 'an addition',
      plan: requestAdd(view({ settings: { replicas: 5 } }), 1, 4),
      steps: [{ type: 'addLearner', nodeId: 4 }, change([4], [])],
    },
  ])('$name', ({ plan, steps }) => expect(plan).toMatchObject({ kind: 'admin', steps }));

  test('a merge is done by the range that goes on, and keeps the other one free of operators', () =>
    expect(requestMerge(view(), 2, 1)).toMatchObject({ rangeId: 1, partner: 2 }));
});

describe('what is not possible is refused, and what would be right is said', () => {
  const joint = rangeInfo(1, { voters: [1, 2, 3], end: 'm', joint: true });
  const leaderless = rangeInfo(1, { voters: [1, 2, 3], end: 'm', leader: undefined });
  test.each<{ name: string; request: () => unknown; says: RegExp }>([
    {
      name: 'an unknown range',
      request: () => requestMove(view(), 9, { from: 1, to: 4 }),
      says: /unknown range 9/,
    },
    {
      name: 'a range without a leader',
      request: () => requestTransfer(view({ ranges: [leaderless] }), 1, 2),
      says: /no leader/,
    },
    {
      name: 'a range that is changing',
      request: () => requestTransfer(view({ ranges: [joint] }), 1, 2),
      says: /changing; try again later/,
    },
    {
      name: 'a move from a node without a voter',
      request: () => requestMove(view(), 1, { from: 5, to: 4 }),
      says: /its voters are on nodes 1, 2, 3/,
    },
    {
      name: 'a move to a node that has a replica',
      request: () => requestMove(view(), 1, { from: 1, to: 2 }),
      says: /node 2 already has a replica; nodes 4, 5 can receive it/,
    },
    {
      name: 'a move to a node that is down',
      request: () => requestMove(view({ odd: [down(4)] }), 1, { from: 1, to: 4 }),
      says: /node 4 is down; node 5 can receive it/,
    },
    {
      name: 'a move to an unknown node',
      request: () => requestMove(view(), 1, { from: 1, to: 9 }),
      says: /unknown node 9/,
    },
    {
      name: 'a move without a quorum',
      request: () => requestMove(view({ odd: [down(2), down(3)] }), 1, { from: 3, to: 4 }),
      says: /only 1 of the 3 voters.*bring other nodes back first/,
    },
    {
      name: 'an addition to a range that has all',
      request: () => requestAdd(view(), 1, 4),
      says: /has 3 of 3 replicas; move one, or raise the setting "replicas"/,
    },
    {
      name: 'a removal of what is not there',
      request: () => requestRemove(view(), 1, 4),
      says: /no replica on node 4/,
    },
    {
      name: 'a removal that would lose the quorum',
      request: () => requestRemove(view({ odd: [down(2)] }), 1, 3),
      says: /would lose its quorum: only 1 of the 2 voters.*add a replica elsewhere first/,
    },
    {
      name: 'a removal beside a node that has just been missed, before its leader says so',
      request: () => requestRemove(view({ odd: [nodeInfo(2, { liveness: 'suspect' })] }), 1, 3),
      says: /would lose its quorum: its replica on node 2 is silent or in maintenance; add a replica elsewhere first/,
    },
    { name: 'a transfer to the leader', request: () => requestTransfer(view(), 1, 1), says: /already leads range 1/ },
    {
      name: 'a transfer to a node without a voter',
      request: () => requestTransfer(view(), 1, 4),
      says: /node 4 has no voter.*voters are on nodes 1, 2, 3/,
    },
    {
      name: 'a transfer to a node that is down',
      request: () => requestTransfer(view({ odd: [down(2)] }), 1, 2),
      says: /node 2 is down/,
    },
    {
      name: 'a split key outside',
      request: () => requestSplit(view(), 1, Buffer.from('x')),
      says: /outside the range or on its border/,
    },
    {
      name: 'a split key on the border',
      request: () => requestSplit(view(), 2, Buffer.from('m')),
      says: /outside the range or on its border/,
    },
    { name: 'a merge with itself', request: () => requestMerge(view(), 1, 1), says: /does not start where/ },
    {
      name: 'a merge into the range behind',
      request: () => requestMerge(view(), 1, 2),
      says: /the one with the smaller keys remains: merge range 2 into range 1 instead/,
    },
    { name: 'a merge with an unknown range', request: () => requestMerge(view(), 1, 9), says: /unknown range 9/ },
  ])('$name', ({ request, says }) => {
    expect(request).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(says) }),
    );
  });
});

describe('nodes that are to go', () => {
  /** Node 4 takes the place of node 3. */
  const MOVING = rangeInfo(1, { voters: [1, 2, 3], learners: [4] });
  const resting = (nodeId: number): NodeInfo => nodeInfo(nodeId, { duty: 'maintenance' });
  const missed = (nodeId: number): NodeInfo => nodeInfo(nodeId, { liveness: 'suspect' });

  test('may when enough others are left', () => {
    requireDecommissionable(view(), 1);
    requireDecommissionable(view({ odd: [down(5)] }), 1);
  });

  test.each<{ name: string; check: () => void; says: RegExp }>([
    {
      name: 'below the replication factor',
      check: () => requireDecommissionable(view({ odd: [down(4), down(5)] }), 1),
      says: /only 2 nodes are up and serving, and ranges have 3 replicas; add a node first/,
    },
    { name: 'one that does not exist', check: () => requireDecommissionable(view(), 9), says: /unknown node 9/ },
    {
      name: 'one that is gone',
      check: () => requireDecommissionable(view({ odd: [nodeInfo(5, { duty: 'removed' })] }), 5),
      says: /already removed/,
    },
    {
      name: 'removal of one that lives and holds replicas',
      check: () => requireRemovable(view(), 1),
      says: /is up and holds 2 replicas; decommission it, and remove it when it is empty; or stop it/,
    },
    {
      name: 'removal that would cost a quorum',
      check: () => requireRemovable(view({ odd: [down(2), down(3)] }), 3),
      says: /range 1 could not replace its replica on node 3.*bring other nodes back first/,
    },
    {
      name: 'removal beside a node that has just been missed, before a leader says so',
      check: () => requireRemovable(view({ odd: [missed(2), missed(3)] }), 3),
      says: /range 1 could not replace its replica on node 3: its replica on node 2 is silent.*bring other nodes back/,
    },
    {
      name: 'a pause of one whose learner may take the place of a voter, beside another one in maintenance',
      check: () => requireMaintainable(view({ odd: [resting(2)], ranges: [MOVING] }), 4),
      says: /range 1 would lose its quorum while node 4 is down: its replica on node 2 is/,
    },
  ])('may not: $name', ({ check, says }) => {
    expect(check).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(says) }));
  });

  test('may pause, one of the same ranges at a time', () => {
    requireMaintainable(view(), 1);
    requireMaintainable(view({ ranges: [MOVING] }), 4);
    requireMaintainable(view({ odd: [resting(2)] }), 4);
  });

  test('may be removed when they are down and the others have the quorum, or when they are empty', () => {
    requireRemovable(view({ odd: [down(3)] }), 3);
    requireRemovable(view({ odd: [missed(3)] }), 3);
    requireRemovable(view(), 5);
  });
});
