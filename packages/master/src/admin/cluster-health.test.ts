import { ManualClock } from '@remora/base';
import { CONDITIONS_TOLD_MAX, type HealthCondition, healthCondition } from '@remora/protocol';
import { expect, test } from 'vitest';
import { ClusterHealth } from './cluster-health.ts';

function told(more: readonly HealthCondition[]): readonly HealthCondition[] {
  const health = new ClusterHealth({
    clock: new ManualClock(),
    knowledge: () => ({
      ...{ nodes: [], ranges: [], heard: new Map(), wallMs: 0 },
      stateOf: () => 'up',
      dutyOf: (nodeId) => ({ nodeId, duty: 'serving', untilMs: 0 }),
      isMaster: () => true,
      mergedInto: () => undefined,
    }),
    ...{ replicas: () => 3, firstReplicas: 3, unheard: () => false, more: () => more },
  });
  return health.told();
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
  expect(conditions.slice(-2)).toEqual([full, draining]);
});
