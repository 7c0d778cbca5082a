import { ManualClock } from '@remora/base/testing';
import { CONDITIONS_TOLD_MAX, type HealthCondition, healthCondition } from '@remora/protocol';
import { expect, test } from 'vitest';
import { ClusterHealth } from './cluster-health.ts';

function told(more: readonly HealthCondition[], nodeId = 1): readonly HealthCondition[] {
  const health = new ClusterHealth({
    clock: new ManualClock(),
    knowledge: () => ({
      ...{ nodes: [], ranges: [], heard: new Map(), wallMs: 0, isRestoring: false },
      stateOf: () => 'up',
      dutyOf: (nodeId) => ({ nodeId, duty: 'serving', untilMs: 0 }),
      isMaster: () => true,
      mergedInto: () => undefined,
    }),
    ...{ replicas: () => 3, firstReplicas: 3, unheard: () => false, more: () => more },
  });
  return health.told(nodeId);
}

test('what makes nodes unready is told however much else is wrong, and the list stays bounded with the worst first', () => {
  const lost = Array.from({ length: 2 * CONDITIONS_TOLD_MAX }, (_, i) =>
    healthCondition('quorumLost', { rangeId: i + 1 }, `range ${i + 1} is lost`),
  );
  const full = healthCondition('diskReserve', { nodeId: 2 }, 'no room');
  const draining = healthCondition('draining', { nodeId: 3 }, 'it drains');
  const conditions = told([...lost, full, draining]);
  expect(conditions).toHaveLength(CONDITIONS_TOLD_MAX);
  expect(conditions.slice(0, 2).map(({ name }) => name)).toEqual(['noRanges', 'quorumLost']);
  expect(conditions.slice(-3)).toEqual([full, draining, expect.objectContaining({ name: 'notListed' })]);
});

test('a list that is cut says how many conditions are missing', () => {
  const lost = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      healthCondition('quorumLost', { rangeId: i + 1 }, `range ${i + 1} is lost`),
    );
  // One more is always there: the cluster of this test has no range.
  expect(told(lost(CONDITIONS_TOLD_MAX - 1)).some(({ name }) => name === 'notListed')).toBe(false);
  const conditions = told(lost(CONDITIONS_TOLD_MAX + 20));
  expect(conditions).toHaveLength(CONDITIONS_TOLD_MAX);
  expect(conditions.at(-1)?.text).toMatch(/^22 more conditions /);
});

test('each node is told what makes it unready, also when that is true of more nodes than are listed', () => {
  const full = (nodeId: number) => healthCondition('diskReserve', { nodeId }, `no room on n${nodeId}`);
  const draining = (nodeId: number) => healthCondition('draining', { nodeId }, `n${nodeId} drains`);
  const nodes = Array.from({ length: 3 * CONDITIONS_TOLD_MAX }, (_, i) => i + 1);
  const all = nodes.flatMap((nodeId) => [full(nodeId), draining(nodeId)]);
  for (const nodeId of nodes) {
    const conditions = told(all, nodeId);
    expect(conditions).toHaveLength(CONDITIONS_TOLD_MAX);
    expect(conditions.filter((each) => each.nodeId === nodeId)).toEqual([full(nodeId), draining(nodeId)]);
  }
});
