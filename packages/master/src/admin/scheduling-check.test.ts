import { describe, expect, test } from 'vitest';
import { NOW_MS, nodeInfo, rangeInfo, schedulingBed, upNodes } from '../../test/support/scheduling-bed.ts';
import { requestMove } from '../scheduling/requests.ts';
import { schedulingConditions } from './scheduling-check.ts';

const WHOLE = rangeInfo(1, { voters: [1, 2, 3] });

function found(given: Parameters<typeof schedulingBed>[0]): readonly string[] {
  return schedulingConditions(schedulingBed(given), NOW_MS).map(({ name, text }) => `${name} ${text}`);
}

describe('the scheduling finds', () => {
  const silent = { 3: NOW_MS - 3_600_000 };
  const zones = ['a', 'a', 'b', 'c'].map((zone, i) => nodeInfo(i + 1, { labels: { zone } }));
  const noRoom = upNodes(3);
  test.each<{ name: string; given: Parameters<typeof schedulingBed>[0]; expect: readonly RegExp[] }>([
    { name: 'nothing wrong', given: { nodes: upNodes(4), ranges: [WHOLE] }, expect: [] },
    {
      name: 'a lost replica that no node can take',
      given: { nodes: noRoom, ranges: [rangeInfo(1, { voters: [1, 2, 3], silent })] },
      expect: [/^stuck range 1 cannot be repaired now: the replica on node 3 is lost, and no node can take a replica/],
    },
    {
      name: 'replicas in one zone, of which there are more',
      given: { nodes: zones, ranges: [WHOLE] },
      expect: [/^misplaced range 1: its replicas on nodes 1, 2, 3 could be placed further apart/],
    },
    {
      name: 'nothing misplaced while there are fewer nodes to choose from than replicas',
      given: { nodes: [...upNodes(2), nodeInfo(3, { duty: 'maintenance' })], ranges: [WHOLE] },
      expect: [],
    },
    {
      name: 'nothing to say of a range without a quorum: that is told elsewhere',
      given: { nodes: noRoom, ranges: [rangeInfo(1, { voters: [1, 2, 3], silent: { 2: 1, 3: 1 } })] },
      expect: [],
    },
    {
      name: 'nothing stuck in a change that is being applied',
      given: { nodes: noRoom, ranges: [rangeInfo(1, { voters: [1, 2, 3], changePending: true })] },
      expect: [],
    },
  ])('$name', ({ given, expect: expected }) => {
    expect(found(given)).toEqual(expected.map((text) => expect.stringMatching(text)));
  });

  test('an operator that has used up half of its time, with what it waits for', () => {
    const scheduling = schedulingBed({ nodes: upNodes(4), ranges: [WHOLE] });
    scheduling.request(requestMove(scheduling.view(NOW_MS), 1, { from: 3, to: 4 }), NOW_MS);
    scheduling.rangeReported(WHOLE, NOW_MS);
    scheduling.controller.refused(1, 'its disk is full', NOW_MS);
    expect(schedulingConditions(scheduling, NOW_MS + 29_000)).toEqual([]);
    expect(schedulingConditions(scheduling, NOW_MS + 30_000)).toMatchObject([
      {
        name: 'stuckOperator',
        rangeId: 1,
        text:
          'operator 1 of range 1 (requested: move from node 3 to node 4) has been at step "add a learner on node 4" for 30s: refused so ' +
          'far: its disk is full',
      },
    ]);
  });
});
