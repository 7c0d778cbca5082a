import { expect, test } from 'vitest';
import { NOW_MS, nodeInfo, rangeInfo, schedulingBed } from '../../test/support/scheduling-bed.ts';

test('ranges that limits keep from being repaired do not keep others from being looked at', () => {
  const nodes = [
    ...[1, 2, 3, 4].map((nodeId) => nodeInfo(nodeId)),
    nodeInfo(5, { duty: 'removed' }),
    nodeInfo(6, { duty: 'draining' }),
  ];
  const lost = Array.from({ length: 4_000 }, (_, i) => rangeInfo(i + 1, { voters: [1, 2, 5] }));
  const drained = rangeInfo(9_999, { voters: [6, 3, 4] });
  const scheduling = schedulingBed({ nodes, ranges: [...lost, drained] });
  for (let s = 0; s < 10; s++) scheduling.tick(NOW_MS + 1_000 * s);
  expect(scheduling.controller.operatorOf(9_999)).toMatchObject({ kind: 'evacuate' });
  expect(scheduling.controller.active().filter(({ kind }) => kind === 'repair')).not.toEqual([]);
});
