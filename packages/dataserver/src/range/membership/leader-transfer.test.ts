import { ServiceError } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import type { GroupStatus, ProgressStatus, Refused } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { transferLeaderTo } from './leader-transfer.ts';

const replicas = [
  { replicaId: 11, nodeId: 1, type: 'voter' },
  { replicaId: 12, nodeId: 2, type: 'voter' },
  { replicaId: 14, nodeId: 4, type: 'learner' },
] as const;

function bed(given: { leading?: boolean; active?: boolean; answer?: Refused } = {}) {
  const asked: number[] = [];
  const progress = [{ replica: 12, heardLately: given.active ?? true }] as unknown as readonly ProgressStatus[];
  const group = {
    replicaId: 11,
    status: () => ({ progress }) as unknown as GroupStatus,
    transferLeader(to: number) {
      asked.push(to);
      return given.answer;
    },
  };
  const replica = {
    rangeId: 2,
    leading: given.leading ?? true,
    notLeader: () => new ServiceError('NOT_LEADER', 'not here', { details: { leaderNode: 2 } }),
    group,
    state: { descriptor: { replicas } as unknown as RangeDescriptor },
  };
  return { asked, to: (node: number) => transferLeaderTo(replica, node) };
}

describe('handing a range over', () => {
  test('asks the replica of the node to lead', () => {
    const { asked, to } = bed();
    expect(to(2)).toBeUndefined();
    expect(asked).toEqual([12]);
  });

  test('to the node that leads is nothing to do', () => {
    const { asked, to } = bed();
    expect(to(1)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  const refusals: readonly {
    name: string;
    given: Parameters<typeof bed>[0];
    to: number;
    code: string;
    says: string;
  }[] = [
    { name: 'a follower', given: { leading: false }, to: 2, code: 'NOT_LEADER', says: 'not here' },
    { name: 'a learner', given: {}, to: 4, code: 'INVALID_ARGUMENT', says: 'there are some on nodes 1, 2' },
    { name: 'a stranger', given: {}, to: 9, code: 'INVALID_ARGUMENT', says: 'node 9 has no voting replica' },
    { name: 'a silent one', given: { active: false }, to: 2, code: 'INVALID_ARGUMENT', says: 'has not answered' },
    {
      name: 'two at once',
      given: { answer: { refused: 'transferring' } },
      to: 2,
      code: 'UNAVAILABLE',
      says: 'another',
    },
    { name: 'a lost leadership', given: { answer: { refused: 'notLeader' } }, to: 2, code: 'NOT_LEADER', says: 'not' },
  ];
  test.each(refusals)('is refused for $name', ({ given, to, code, says }) => {
    const error = bed(given).to(to);
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(says);
  });
});
