import { expect, test } from 'vitest';
import { ClusterModel } from './cluster-model.ts';
import { belonging } from './orphan-check.ts';
import { rangeInfo } from './test-kit.ts';

const model = new ClusterModel();
model.setRange(rangeInfo(1, { voters: [1, 2], learners: [3], confVersion: 5 }));

test.each([
  { name: 'a voter belongs', rangeId: 1, replicaId: 101, confVersion: 5, expected: 'member' },
  { name: 'a learner belongs', rangeId: 1, replicaId: 103, confVersion: 5, expected: 'member' },
  { name: 'a member with old news belongs', rangeId: 1, replicaId: 101, confVersion: 1, expected: 'member' },
  { name: 'one of an earlier membership was removed', rangeId: 1, replicaId: 104, confVersion: 4, expected: 'removed' },
  {
    name: 'of one with the same membership nothing is said',
    rangeId: 1,
    replicaId: 104,
    confVersion: 5,
    expected: 'unknown',
  },
  {
    name: 'one of a later membership may have joined',
    rangeId: 1,
    replicaId: 104,
    confVersion: 6,
    expected: 'unknown',
  },
  {
    name: 'of a range that is not known nothing is said',
    rangeId: 2,
    replicaId: 201,
    confVersion: 1,
    expected: 'unknown',
  },
])('$name', ({ rangeId, replicaId, confVersion, expected }) => {
  expect(belonging(model, { rangeId, replicaId, epoch: { confVersion, version: 1 } })).toBe(expected);
});
