import { describe, expect, test } from 'vitest';
import { brokenRanges, type ClusterSeen, isBalanced, isEven, type RangeSeen } from './cluster-view.ts';

const voters = (id: number, ...nodes: readonly number[]): RangeSeen => ({
  id,
  leaderNode: nodes[0] ?? 0,
  replicas: nodes.map((nodeId) => ({ nodeId, type: 'voter' })),
});

const node = (id: number, seen: Partial<ClusterSeen['nodes'][number]> = {}): ClusterSeen['nodes'][number] => ({
  ...{ id, name: `n${id}`, state: 'up', duty: 'serving', replicas: 3, leaders: 1 },
  ...seen,
});

describe('a range is whole', () => {
  const nodes = [node(1), node(2), node(3), node(4, { state: 'suspect' })];
  const rows: readonly (readonly [string, RangeSeen, boolean])[] = [
    ['with three voters on nodes that are up', voters(7, 1, 2, 3), true],
    ['not with one on a node that is silent', voters(7, 1, 2, 4), false],
    ['not with two', voters(7, 1, 2), false],
    [
      'not with a learner beside them',
      { ...voters(7, 1, 2, 3), replicas: [...voters(7, 1, 2, 3).replicas, { nodeId: 3, type: 'learner' }] },
      false,
    ],
    ['not without a leader', { ...voters(7, 1, 2, 3), leaderNode: 0 }, false],
    ['not led by a node that is silent', { ...voters(7, 1, 2, 3), leaderNode: 4 }, false],
  ];
  test.each(rows)('%s', (_name, range, whole) => {
    expect(brokenRanges({ nodes, ranges: [range] }, 3)).toEqual(whole ? [] : [range]);
  });
});

describe('counts are even', () => {
  test.each([
    ['one apart, however few', [2, 3, 3], true],
    ['two apart of few', [8, 10, 10], false],
    ['a tenth of the mean apart', [29, 31, 31], true],
    ['more than a tenth apart', [27, 30, 31], false],
  ] as const)('%s: %s', (_name, counts, even) => {
    expect(isEven(counts)).toBe(even);
  });
});

test('balance is of the nodes that are up and serve', () => {
  const even = [node(1), node(2), node(3)];
  expect(isBalanced({ nodes: even, ranges: [] })).toBe(true);
  for (const away of [node(4, { replicas: 0, duty: 'decommissioning' }), node(4, { replicas: 9, state: 'down' })]) {
    expect(isBalanced({ nodes: [...even, away], ranges: [] })).toBe(true);
  }
  expect(isBalanced({ nodes: [...even, node(4, { replicas: 0 })], ranges: [] })).toBe(false);
  expect(isBalanced({ nodes: [...even, node(4, { leaders: 5 })], ranges: [] })).toBe(false);
});
