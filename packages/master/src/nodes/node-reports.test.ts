import type { HeartbeatChanges, RangeReport } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
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

describe('a heartbeat with changes only', () => {
  const report = (rangeId: number, term = 1): RangeReport => ({
    ...{ rangeId, replicaId: 10 + rangeId, epoch: { confVersion: 1, version: 1 }, term, applied: 1, bytes: 0 },
    ...{ silent: false, lead: undefined },
  });
  const beat = (changes: HeartbeatChanges, ranges: readonly RangeReport[]) => ({ ...HEARTBEAT, ranges, changes });

  test('is put together with what was heard before', () => {
    const reports = new NodeReports();
    expect(reports.heard(beat({ number: 1, since: 0, ended: [] }, [report(1), report(2)]), 0)).toBe(true);
    expect(reports.heard(beat({ number: 2, since: 1, ended: [1] }, [report(2, 5), report(3)]), 1)).toBe(true);
    expect(reports.last(1)?.ranges).toEqual([report(2, 5), report(3)]);
    const [{ ranges } = HEARTBEAT, { version }] = [reports.last(1), reports];
    expect(reports.heard(beat({ number: 3, since: 2, ended: [] }, []), 2)).toBe(true);
    expect(reports.last(1)?.ranges).toBe(ranges); // nothing is new
    expect(reports.version).toBe(version);
    expect(reports.all(10).get(1)?.silentMs).toBe(8);
  });

  test('is refused if it does not continue the last one (NR2)', () => {
    const reports = new NodeReports();
    expect(reports.heard(beat({ number: 8, since: 7, ended: [] }, []), 0)).toBe(false);
    expect(reports.last(1)).toBeUndefined();
    reports.heard(beat({ number: 8, since: 0, ended: [] }, [report(1)]), 0);
    expect(reports.heard(beat({ number: 10, since: 9, ended: [] }, [report(2)]), 1)).toBe(false);
    expect(reports.last(1)?.ranges).toEqual([report(1)]);
    reports.termBegan(2);
    expect(reports.heard(beat({ number: 9, since: 8, ended: [] }, []), 3)).toBe(false);
    expect(reports.heard(beat({ number: 10, since: 0, ended: [] }, [report(2)]), 4)).toBe(true);
    expect(reports.last(1)?.ranges).toEqual([report(2)]);
  });

  test('gives each report to the scheduling until it is taken, and wanted ones again (NR3)', () => {
    const reports = new NodeReports();
    reports.heard(beat({ number: 1, since: 0, ended: [] }, [report(1), report(2)]), 0);
    reports.taken(1, 1);
    expect(reports.toTake(1, [])).toEqual([report(2)]);
    expect(reports.toTake(1, [1, 9])).toEqual([report(2), report(1)]);
    reports.heard(beat({ number: 2, since: 1, ended: [2] }, [report(1, 3)]), 1);
    expect(reports.toTake(1, [])).toEqual([report(1, 3)]);
    expect(reports.toTake(2, [1])).toEqual([]);
  });
});
