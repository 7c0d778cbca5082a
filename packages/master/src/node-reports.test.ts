import { expect, test } from 'vitest';
import { NodeReports } from './node-reports.ts';

const LIMITS = { suspectAfter: 3_000, downAfter: 60_000 };
const HEARTBEAT = {
  ...{ nodeId: 1, incarnation: 'a', space: { capacityBytes: 1, availableBytes: 1 }, labels: {}, hasMaster: false },
  ...{ ranges: [], results: [] },
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
