import { EMPTY_BYTES, utf8 } from '@remora/base';
import { type HeldGroup, MASTERS, type NodeGroups, type RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { planRecovery, type RecoveryPlan } from './plan.ts';

/** Replica 10 × range + node, as all of them are. */
function range(rangeId: number, nodes: readonly number[], given: Partial<RangeDescriptor> = {}): RangeDescriptor {
  return {
    ...{ rangeId, start: EMPTY_BYTES, end: EMPTY_BYTES, epoch: { confVersion: 4, version: 2 } },
    replicas: nodes.map((nodeId) => ({ replicaId: 10 * rangeId + nodeId, nodeId, type: 'voter' })),
    revisionSource: 'master',
    ...given,
  };
}

function held(descriptor: RangeDescriptor, nodeId: number, given: Partial<HeldGroup> = {}): HeldGroup {
  const { rangeId } = descriptor;
  const voters = descriptor.replicas.map((replica) => replica.nodeId);
  const replicaId = 10 * rangeId + nodeId;
  const log = { lastTerm: 3, lastIndex: 20, led: false };
  return { groupId: rangeId, replicaId, range: descriptor, voters, votersOutgoing: [], ...log, ...given };
}

function masters(voters: readonly number[], nodeId: number, given: Partial<HeldGroup> = {}): HeldGroup {
  const log = { lastTerm: 3, lastIndex: 20, led: false };
  return { groupId: MASTERS, replicaId: nodeId, range: undefined, voters, votersOutgoing: [], ...log, ...given };
}

const node = (nodeId: number, ...groups: readonly HeldGroup[]): NodeGroups => ({ nodeId, groups });

function told({ masters: lost, ranges, unrecoverable }: RecoveryPlan): readonly string[] {
  const groups = lost === undefined ? ranges : [lost, ...ranges];
  return [
    ...groups.map(({ groupId, survivor, givenUp }) => `${groupId} on ${survivor}, not on ${givenUp.join(' ') || '-'}`),
    ...unrecoverable.map(({ range: { rangeId }, reason }) => `${rangeId}: ${reason}`),
  ];
}

const R2 = range(2, [1, 2, 3]);
const R5 = range(2, [1, 2, 3, 4, 5]);
const HALF = range(2, [1, 2, 3], { end: utf8('m'), epoch: { confVersion: 4, version: 3 } });
const REST = range(3, [4, 5, 1], { start: utf8('m'), epoch: { confVersion: 4, version: 3 } });

describe('what is done where majorities are lost', () => {
  const rows = [
    { name: 'one voter is left', dead: [2, 3], seen: [node(1, held(R2, 1))], expect: ['2 on 1, not on -'] },
    { name: 'two of three are left', dead: [3], seen: [node(1, held(R2, 1)), node(2, held(R2, 2))], expect: [] },
    { name: 'a leader is heard', dead: [2, 3], seen: [node(1, held(R2, 1, { led: true }))], expect: [] },
    {
      name: 'of two the later last term counts, not the longer log (RP1)',
      dead: [3, 4, 5],
      seen: [node(1, held(R5, 1, { lastIndex: 30 })), node(2, held(R5, 2, { lastTerm: 4, lastIndex: 9 }))],
      expect: ['2 on 2, not on 1'],
    },
    {
      name: 'of two of one term the longer log counts (RP1)',
      dead: [3, 4, 5],
      seen: [node(1, held(R5, 1)), node(2, held(R5, 2, { lastIndex: 21 }))],
      expect: ['2 on 2, not on 1'],
    },
    {
      name: 'of equal ones the lowest id counts, whoever was asked first (RP1)',
      dead: [3, 4, 5],
      seen: [node(2, held(R5, 2)), node(1, held(R5, 1))],
      expect: ['2 on 1, not on 2'],
    },
    {
      name: 'half of the voters are no majority',
      dead: [3, 4],
      seen: [node(1, held(range(2, [1, 2, 3, 4]), 1)), node(2, held(range(2, [1, 2, 3, 4]), 2))],
      expect: ['2 on 1, not on 2'],
    },
    {
      name: 'a joint configuration needs both majorities (RP2)',
      dead: [4, 5],
      seen: [1, 2, 3].map((id) => node(id, held(R5, id, { voters: [1, 2, 3], votersOutgoing: [3, 4, 5] }))),
      expect: ['2 on 1, not on 2 3'],
    },
    {
      name: 'a replica that never had a membership counts for nothing',
      dead: [2, 3],
      seen: [node(1, held(R2, 1, { voters: [], lastIndex: 0 }))],
      expect: [],
    },
    {
      name: 'the masters',
      dead: [2, 3],
      seen: [node(1, masters([1, 2, 3], 1)), node(4)],
      expect: ['1 on 1, not on -'],
    },
    {
      name: 'nothing is left of a range',
      dead: [2, 3],
      seen: [node(1)],
      known: [range(2, [2, 3])],
      expect: ['2: no replica of it is left'],
    },
    {
      name: 'the replica that is left has not come to a split that the masters know (RP3)',
      dead: [2, 3],
      seen: [node(1, held(R2, 1))],
      known: [HALF, range(3, [1, 2, 3], { start: utf8('m'), epoch: { confVersion: 4, version: 3 } })],
      expect: ['2: its newest replica is older than a split or a merge: range 2 has some of its keys'],
    },
    {
      name: 'the same, and only another range knows of the split',
      dead: [2, 3],
      seen: [node(1, held(R2, 1)), node(4, held(REST, 4)), node(5, held(REST, 5))],
      expect: ['2: its newest replica is older than a split or a merge: range 3 has some of its keys'],
    },
    {
      name: 'a replica is left of a range that was merged away',
      dead: [2, 3],
      seen: [
        node(1, held(R2, 1), held(range(7, [1, 4, 5], { epoch: { confVersion: 1, version: 9 } }), 1, { led: true })),
      ],
      known: [range(7, [1, 4, 5], { epoch: { confVersion: 1, version: 9 } })],
      expect: [],
    },
    {
      name: 'a replica was removed from its range, of which nothing else is left (RP3)',
      dead: [2, 3, 4],
      seen: [node(1, held(R2, 1))],
      known: [range(2, [2, 3, 4], { epoch: { confVersion: 9, version: 2 } })],
      expect: ['2: no replica of it is left'],
    },
  ];
  test.each(rows)('$name', ({ dead, seen, known = [], expect: expected }) => {
    expect(told(planRecovery({ dead, seen, known }))).toEqual(expected);
  });

  test('who goes on is told the latest epoch that anybody knows', () => {
    const known = [range(2, [1, 2, 3], { epoch: { confVersion: 8, version: 2 } })];
    const { ranges } = planRecovery({ dead: [2, 3], seen: [node(1, held(R2, 1))], known });
    expect(ranges[0]).toMatchObject({ epoch: { confVersion: 8, version: 2 }, lastTerm: 3, lastIndex: 20 });
  });
});
