import { describe, expect, test } from 'vitest';
import { NOW_MS, nodeInfo, type RangeGiven, rangeInfo, upNodes, viewOf } from '../../test/support/scheduling-bed.ts';
import type { NodeInfo } from './cluster-model.ts';
import { checkRange } from './range-check.ts';

interface Row {
  readonly name: string;
  readonly range: RangeGiven;
  /** Instead of the node of the same id among nodes 1 to 5. */
  readonly odd?: readonly NodeInfo[];
  readonly expected: object | string;
}

const LOST_MS = NOW_MS - 600_000;
const LATELY_MS = NOW_MS - 599_000;
const add = (nodeId: number) => ({ type: 'addLearner', nodeId });
const change = (promote: readonly number[], remove: readonly number[]) => ({ type: 'changeVoters', promote, remove });
const transfer = (nodeId: number) => ({ type: 'transferLeader', nodeId });
const plan = (kind: string, ...steps: readonly object[]) => ({
  type: 'plan',
  plan: expect.objectContaining({ kind, steps }),
});
const stuck = (reason: RegExp) => ({ type: 'stuck', reason: expect.stringMatching(reason) });
const FINE = { type: 'fine' };

function verdict({ range, odd = [] }: Row) {
  const info = rangeInfo(1, range);
  const nodes = upNodes(5).map((node) => odd.find(({ nodeId }) => nodeId === node.nodeId) ?? node);
  return checkRange(info, viewOf({ nodes, ranges: [info] }));
}

const THREE = { voters: [1, 2, 3] };

describe('a range that', () => {
  test.each<Row>([
    { name: 'is whole is fine', range: THREE, expected: FINE },
    { name: 'has no leader waits for one', range: { ...THREE, leader: undefined }, expected: stuck(/no leader/) },
    {
      name: 'has lost its quorum cannot be mended',
      range: { ...THREE, silent: { 2: LOST_MS, 3: LOST_MS } },
      expected: stuck(/only 1 of its 3 voters .* no quorum/),
    },
    {
      name: 'is changing is left alone',
      range: { ...THREE, changePending: true, silent: { 3: LOST_MS } },
      expected: stuck(/in progress/),
    },
    {
      name: 'was left joint leaves that',
      range: { ...THREE, joint: true },
      expected: plan('repair', { type: 'leaveJoint' }),
    },
    {
      name: 'is joint leaves that before a lost replica goes',
      range: { ...THREE, joint: true, silent: { 3: LOST_MS } },
      expected: plan('repair', { type: 'leaveJoint' }),
    },
  ])('$name', (row) => expect(verdict(row)).toEqual(row.expected));
});

describe('a lost replica (R2)', () => {
  const silent = { 3: LOST_MS };
  test.each<Row>([
    {
      name: 'is replaced, the new one first (R1)',
      range: { ...THREE, silent },
      expected: plan('repair', add(4), change([4], [3])),
    },
    { name: 'is not one that is silent for less', range: { ...THREE, silent: { 3: LATELY_MS } }, expected: FINE },
    {
      name: 'is replaced by a learner that is there',
      range: { ...THREE, learners: [5], silent },
      expected: plan('repair', change([5], [3])),
    },
    {
      name: 'is not replaced by a silent learner',
      range: { ...THREE, learners: [5], silent: { 3: LOST_MS, 5: LATELY_MS } },
      expected: plan('repair', add(4), change([4], [3])),
    },
    {
      name: 'just goes when there are too many',
      range: { voters: [1, 2, 3, 4], silent },
      expected: plan('repair', change([], [3])),
    },
    {
      name: 'that is a learner goes',
      range: { ...THREE, learners: [5], silent: { 5: LOST_MS } },
      expected: plan('repair', change([], [5])),
    },
    {
      name: 'is one on a removed node, at once',
      range: THREE,
      odd: [nodeInfo(3, { duty: 'removed' })],
      expected: plan('repair', add(4), change([4], [3])),
    },
    {
      name: 'is none while its node is in a maintenance window',
      range: { ...THREE, silent },
      odd: [nodeInfo(3, { duty: 'maintenance', maintenanceUntilMs: NOW_MS + 1 })],
      expected: FINE,
    },
    {
      name: 'is one when the window is over',
      range: { ...THREE, silent },
      odd: [nodeInfo(3, { duty: 'maintenance', maintenanceUntilMs: NOW_MS })],
      expected: plan('repair', add(4), change([4], [3])),
    },
    {
      name: 'that has no place to go to is explained',
      range: { ...THREE, silent },
      odd: [nodeInfo(4, { duty: 'draining' }), nodeInfo(5, { availableBytes: 0 })],
      expected: stuck(
        /node 3 is lost, and no node can take a replica: .*node 4 is draining; node 5 has too little free space/,
      ),
    },
  ])('$name', (row) => expect(verdict(row)).toEqual(row.expected));
});

describe('learners that nobody looks after, and numbers of replicas', () => {
  test.each<Row>([
    {
      name: 'a learner is promoted where a voter is missing',
      range: { voters: [1, 2], learners: [4] },
      expected: plan('repair', change([4], [])),
    },
    {
      name: 'a learner that is silent goes',
      range: { voters: [1, 2], learners: [4], silent: { 4: LATELY_MS } },
      expected: plan('repair', change([], [4])),
    },
    {
      name: 'a learner that is not needed goes',
      range: { ...THREE, learners: [4] },
      expected: plan('repair', change([], [4])),
    },
    { name: 'too few: one is added', range: { voters: [1, 2] }, expected: plan('repair', add(3), change([3], [])) },
    {
      name: 'too many: one goes, and not the leader',
      range: { voters: [1, 2, 3, 4] },
      expected: plan('place', change([], [2])),
    },
    {
      name: 'too many: the leader goes when the others are needed more',
      range: { voters: [1, 2, 3, 4] },
      odd: [nodeInfo(1, { duty: 'draining' })],
      expected: plan('place', transfer(2), change([], [1])),
    },
    {
      name: 'too many: one that is silent goes first',
      range: { voters: [1, 2, 3, 4], silent: { 3: LATELY_MS } },
      expected: plan('place', change([], [3])),
    },
    {
      name: 'too many: one that lags goes before one that is draining',
      range: { voters: [1, 2, 3, 4], behind: [3] },
      odd: [nodeInfo(2, { duty: 'draining' })],
      expected: plan('place', change([], [3])),
    },
    ...(['draining', 'maintenance'] as const).map((duty) => ({
      name: `too many: one that is silent goes before one that is ${duty}`,
      range: { voters: [1, 2, 3, 4], silent: { 3: LATELY_MS } },
      odd: [nodeInfo(2, { duty })],
      expected: plan('place', change([], [3])),
    })),
  ])('$name', (row) => expect(verdict(row)).toEqual(row.expected));
});

describe('nodes that give things away', () => {
  test.each<Row>([
    ...(['draining', 'maintenance', 'decommissioning'] as const).map((duty) => ({
      name: `a leader leaves a node that is ${duty}`,
      range: THREE,
      odd: [nodeInfo(1, { duty })],
      expected: plan('evacuate', transfer(2)),
    })),
    {
      name: 'a draining node keeps its replicas',
      range: THREE,
      odd: [nodeInfo(3, { duty: 'draining' })],
      expected: FINE,
    },
    {
      name: 'a decommissioned node does not',
      range: THREE,
      odd: [nodeInfo(3, { duty: 'decommissioning' })],
      expected: plan('evacuate', add(4), change([4], [3])),
    },
    {
      name: 'a leader that nobody can follow is explained',
      range: { ...THREE, behind: [2, 3] },
      odd: [nodeInfo(1, { duty: 'draining' })],
      expected: stuck(/must leave node 1, but no other voter can lead/),
    },
    {
      name: 'where nobody can follow, a decommissioned leader moves: its replacement leads before it goes',
      range: { ...THREE, behind: [2, 3] },
      odd: [nodeInfo(1, { duty: 'decommissioning' })],
      expected: plan('evacuate', add(4), change([4], []), transfer(4), change([], [1])),
    },
    {
      name: 'a decommissioned node that cannot be emptied is explained',
      range: THREE,
      odd: [
        nodeInfo(3, { duty: 'decommissioning' }),
        nodeInfo(4, { liveness: 'down' }),
        nodeInfo(5, { liveness: 'suspect' }),
      ],
      expected: stuck(/node 3 is decommissioned, and no node can take a replica: .*node 4 is down; node 5 is suspect/),
    },
  ])('$name', (row) => expect(verdict(row)).toEqual(row.expected));
});

describe('isolation (R3)', () => {
  const zoned = (...zones: readonly string[]) => zones.map((zone, i) => nodeInfo(i + 1, { labels: { zone } }));
  test.each<Row>([
    {
      name: 'a replica moves to a zone of its own',
      range: THREE,
      odd: zoned('a', 'b', 'b', 'c', 'b'),
      expected: plan('place', add(4), change([4], [2])),
    },
    { name: 'replicas in zones of their own stay', range: THREE, odd: zoned('a', 'b', 'c', 'a', 'b'), expected: FINE },
    {
      name: 'where there are too few zones, they stay',
      range: THREE,
      odd: zoned('a', 'b', 'b', 'a', 'a'),
      expected: FINE,
    },
    {
      name: 'what cannot be better now is explained',
      range: THREE,
      odd: [...zoned('a', 'b', 'b'), nodeInfo(4, { labels: { zone: 'c' }, availableBytes: 0 })],
      expected: stuck(/not as far apart as they could be, and .*node 4 has too little free space/),
    },
  ])('$name', (row) => expect(verdict(row)).toEqual(row.expected));
});
