import { describe, expect, test } from 'vitest';
import { confOf } from './membership/membership.ts';
import { isQuorum, quorumIndex, voteResult } from './quorum.ts';
import type { ConfState, ReplicaId } from './types.ts';

function joint(voters: ReplicaId[], votersOutgoing: ReplicaId[]): ConfState {
  return { ...confOf(voters), votersOutgoing };
}

describe('an index is reached by a quorum', () => {
  const rows: { name: string; conf: ConfState; reached: Record<number, number>; expect: number }[] = [
    { name: 'one voter decides alone', conf: confOf([1]), reached: { 1: 7 }, expect: 7 },
    { name: 'two voters must both', conf: confOf([1, 2]), reached: { 1: 7, 2: 3 }, expect: 3 },
    { name: 'two of three suffice', conf: confOf([1, 2, 3]), reached: { 1: 7, 2: 5, 3: 0 }, expect: 5 },
    { name: 'three of four are needed', conf: confOf([1, 2, 3, 4]), reached: { 1: 9, 2: 8, 3: 2, 4: 1 }, expect: 2 },
    {
      name: 'three of five suffice',
      conf: confOf([1, 2, 3, 4, 5]),
      reached: { 1: 9, 2: 1, 3: 8, 4: 2, 5: 4 },
      expect: 4,
    },
    { name: 'a learner does not count', conf: confOf([1, 2, 3], [4]), reached: { 1: 9, 2: 1, 3: 1, 4: 9 }, expect: 1 },
    {
      name: 'joint: the slower majority decides',
      conf: joint([1, 2, 3], [3, 4, 5]),
      reached: { 1: 9, 2: 9, 3: 9, 4: 2, 5: 1 },
      expect: 2,
    },
    {
      name: 'joint: the incoming one decides likewise',
      conf: joint([1, 2, 3], [3, 4, 5]),
      reached: { 1: 1, 2: 3, 3: 9, 4: 9, 5: 9 },
      expect: 3,
    },
  ];
  test.each(rows)('$name', ({ conf, reached, expect: index }) => {
    expect(quorumIndex(conf, (id) => reached[id] ?? 0)).toBe(index);
    expect(isQuorum(conf, (id) => (reached[id] ?? 0) >= index)).toBe(true);
    expect(isQuorum(conf, (id) => (reached[id] ?? 0) > index)).toBe(false);
  });
});

describe('a vote', () => {
  const rows: { name: string; conf: ConfState; yes: ReplicaId[]; no: ReplicaId[]; expect: string }[] = [
    { name: 'one voter wins with its own', conf: confOf([1]), yes: [1], no: [], expect: 'won' },
    { name: 'one of three is not enough', conf: confOf([1, 2, 3]), yes: [1], no: [], expect: 'pending' },
    { name: 'two of three win', conf: confOf([1, 2, 3]), yes: [1, 3], no: [2], expect: 'won' },
    { name: 'two refusals of three lose', conf: confOf([1, 2, 3]), yes: [1], no: [2, 3], expect: 'lost' },
    {
      name: 'two of four are a tie that can only be lost',
      conf: confOf([1, 2, 3, 4]),
      yes: [1, 2],
      no: [3, 4],
      expect: 'lost',
    },
    { name: 'a learner has no vote', conf: confOf([1, 2, 3], [4]), yes: [1, 4], no: [], expect: 'pending' },
    { name: 'joint: both majorities win', conf: joint([1, 2, 3], [3, 4, 5]), yes: [1, 3, 4], no: [], expect: 'won' },
    {
      name: 'joint: one majority is not enough',
      conf: joint([1, 2, 3], [3, 4, 5]),
      yes: [1, 2, 3],
      no: [],
      expect: 'pending',
    },
    {
      name: 'joint: either majority can refuse',
      conf: joint([1, 2, 3], [3, 4, 5]),
      yes: [1, 2, 3],
      no: [4, 5],
      expect: 'lost',
    },
  ];
  test.each(rows)('$name', ({ conf, yes, no, expect: result }) => {
    const votes = new Map([...yes.map((id) => [id, true] as const), ...no.map((id) => [id, false] as const)]);
    expect(voteResult(conf, votes)).toBe(result);
  });
});
