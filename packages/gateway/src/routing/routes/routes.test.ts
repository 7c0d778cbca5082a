import { ManualClock } from '@remora/base/testing';
import type { RangeReply } from '@remora/protocol';
import { expect, test } from 'vitest';
import { Routes } from './routes.ts';

const RANGE_ID = 2;
const VIEW = { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };

function reply(raftTerm: number, rangeTimeMs: number): RangeReply {
  return { revision: 1, raftTerm, rangeTimeMs, result: { type: 'noop' } };
}

test('the time of a range is what its leaders say: a reply of a replica that follows says none, and that it does not lead', () => {
  const clock = new ManualClock();
  const routes = new Routes(clock, () => VIEW);
  routes.learnReply(RANGE_ID, 1, reply(4, 0));
  expect([routes.leader(RANGE_ID), routes.timeMs(RANGE_ID), routes.anyTimeMs()]).toEqual([0, undefined, undefined]);
  routes.learnReply(RANGE_ID, 2, reply(4, 40_000));
  clock.advance(10);
  expect([routes.leader(RANGE_ID), routes.timeMs(RANGE_ID), routes.anyTimeMs()]).toEqual([2, 40_010, 40_010]);
  routes.learnReply(RANGE_ID, 2, reply(5, 0));
  expect([routes.leader(RANGE_ID), routes.timeMs(RANGE_ID)]).toEqual([0, 40_010]);
});
