import { describe, expect, test } from 'vitest';
import type { Judged } from '../report.ts';
import type { ChangeReport } from './change.ts';
import type { DeathReport } from './death.ts';
import { judgeChange, judgeDeath, judgeLoad, judgeRestart } from './nodes-verdict.ts';
import type { RestartReport } from './restart.ts';
import type { LoadReport } from './stage.ts';

const load: LoadReport = {
  phases: [
    {
      ...{ phase: 'before', seconds: 1, offered: 10, kinds: {}, slowest: [] },
      all: { ok: 10, p50Ms: 1, p99Ms: 2, longestMs: 3 },
    },
  ],
  ...{ failed: 0, failures: [], lost: [], capacityPerSecond: 100, ratePerSecond: 30 },
};
const spread = { replicas: [30, 30, 31], leaders: [10, 10, 11] };
const death: DeathReport = {
  ...{ victim: 'data', ranges: 40, downAfterMs: 10_000, repairMs: 60_000, wholeMs: 20_000, balancedMs: 30_000 },
  ...{ spread, load },
};
const change: ChangeReport = {
  joined: { balancedMs: 1, replicas: 20, leaders: 7, spread },
  left: { emptyMs: 1, replicas: 0, leaders: 0, spread },
  load,
};
const restart: RestartReport = {
  nodes: [
    { name: 'n1', maintained: true, led: 0, exitCode: 0, stoppedMs: 10 },
    { name: 'n1', maintained: false, led: 3, exitCode: 0, stoppedMs: 10 },
  ],
  load,
};

const broken = (judged: readonly Judged[]): number => judged.filter(({ holds }) => !holds).length;

test('what was as promised is found so', () => {
  expect([judgeDeath(death), judgeChange(change), judgeRestart(restart)].map(broken)).toEqual([0, 0, 0]);
});

describe('a promise is found broken', () => {
  const failure = { phase: 'before', kind: 'get', dueAt: 'now', error: 'UNAVAILABLE' } as const;
  const [calm, ...others] = restart.nodes;
  if (calm === undefined) throw new Error('no node');
  const rows: readonly (readonly [string, readonly Judged[]])[] = [
    ['when the repair takes too long', judgeDeath({ ...death, wholeMs: 70_001, balancedMs: 70_000 })],
    ['when the balance takes too long', judgeDeath({ ...death, balancedMs: 70_001 })],
    ['when leaders stay uneven', judgeDeath({ ...death, spread: { ...spread, leaders: [8, 10, 11] } })],
    ['when a node that joins leads nothing', judgeChange({ ...change, joined: { ...change.joined, leaders: 0 } })],
    ['when a node is left with a replica', judgeChange({ ...change, left: { ...change.left, replicas: 1 } })],
    ['when a node in maintenance leads', judgeRestart({ ...restart, nodes: [{ ...calm, led: 1 }, ...others] })],
    ['when a node ends badly', judgeRestart({ ...restart, nodes: [{ ...calm, exitCode: 1 }, ...others] })],
    ['when no node that was stopped led anything', judgeRestart({ ...restart, nodes: [calm] })],
    ['when a request fails', [judgeLoad({ ...load, failed: 1, failures: [failure] })]],
    ['when a session is lost', [judgeLoad({ ...load, lost: ['c1'] })]],
    ['when nothing was asked for', [judgeLoad({ ...load, phases: [] })]],
  ];
  test.each(rows)('%s', (_name, judged) => {
    expect(broken(judged)).toBe(1);
  });
});
