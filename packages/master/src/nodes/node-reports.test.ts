import { expect, test } from 'vitest';
import { NodeReports } from './node-reports.ts';

const LIMITS = { suspectAfter: 3_000, downAfter: 60_000 };
const HEARTBEAT = {
  ...{ nodeId: 1, incarnation: 'a', space: { capacityBytes: 1, availableBytes: 1 }, labels: {}, hasMaster: false },
  ...{ ranges: [], results: [], conditions: [], authRevision: 0 },
};

test('a new leader takes nobody for silent until it would have heard it', () => {
  const reports = new NodeReports();
  reports.heard(HEARTBEAT, 0);
  reports.termBegan(10_000);
  const silent = (nowMs: number): boolean => reports.isSilent(1, nowMs, LIMITS);
  expect([10_000, 13_000, 13_001].map(silent)).toEqual([false, false, true]);
  reports.heard(HEARTBEAT, 14_000);
  expect([14_000, 17_000, 17_001].map(silent)).toEqual([false, false, true]);
});

test("what was not heard while the leader itself stood still is nobody's silence", () => {
  const reports = new NodeReports();
  reports.termBegan(0);
  reports.heard(HEARTBEAT, 500);
  for (let ms = 600; ms <= 3_000; ms += 100) reports.looked(ms);
  const stateOf = (nodeId: number, nowMs: number) => reports.stateOf(nodeId, nowMs, LIMITS);
  expect([stateOf(1, 3_000), stateOf(2, 3_000)]).toEqual(['up', 'suspect']);
  reports.looked(100_000);
  expect([stateOf(1, 100_000), stateOf(2, 100_000), reports.isSilent(1, 100_000, LIMITS)]).toEqual([
    'up',
    'suspect',
    false,
  ]);
  for (let ms = 100_000; ms <= 101_000; ms += 100) reports.looked(ms);
  expect([stateOf(1, 101_000), reports.leadingMs(101_000)]).toEqual(['suspect', 4_000]);
  for (let ms = 101_000; ms <= 158_100; ms += 100) reports.looked(ms);
  expect([stateOf(1, 158_000), stateOf(2, 158_100)]).toEqual(['down', 'down']);
});
