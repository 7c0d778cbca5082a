/** The short form of `pnpm nodes`: everything happens to one cluster, one thing after the other, under one load. */
import { beforeAll, expect, test } from 'vitest';
import type { Judged } from '../report.ts';
import { type ChangeReport, join, leave } from './change.ts';
import { type DeathReport, die } from './death.ts';
import { judgeChange, judgeDeath, judgeLoad, judgeRestart } from './nodes-verdict.ts';
import { type RestartReport, restart } from './restart.ts';
import { type LoadReport, type StageOptions, withStage } from './stage.ts';

/**
 * The test says what happens, and not how fast: the machine may be slow, and busy with other clusters. Therefore the
 * load is light, and the limits only end what hangs. The run outlasts a session's TTL, so that sessions live by their
 * heartbeats.
 */
const OPTIONS: StageOptions = {
  ...{ ranges: 6, clients: 3, seed: 1, measureSeconds: 0, ratePerSecond: 20 },
  ...{ calmSeconds: 1, downAfterMs: 3_000, settleMs: 0 },
  limits: { requestTimeoutMs: 60_000, sessionTtlMs: 30_000, repairMs: 300_000, waitMs: 600_000 },
};
const SCENARIOS_TIMEOUT_MS = 1_200_000;

interface Report {
  readonly nodes: RestartReport['nodes'];
  readonly change: Omit<ChangeReport, 'load'>;
  readonly deaths: readonly Omit<DeathReport, 'load'>[];
  readonly load: LoadReport;
}

let report: Report;

beforeAll(async () => {
  report = await withStage(OPTIONS, async (stage) => {
    stage.phase('restarts');
    const nodes = [
      await restart(stage, stage.cluster.node(1), { maintained: true }),
      await restart(stage, stage.cluster.node(2), { maintained: false }),
    ];
    stage.phase('changes');
    const change = { joined: await join(stage), left: await leave(stage) };
    stage.phase('deaths');
    const deaths = [await die(stage, 'data'), await die(stage, 'master')];
    return { nodes, change, deaths, load: await stage.finish() };
  });
}, SCENARIOS_TIMEOUT_MS);

const broken = (judged: readonly Judged[]): readonly Judged[] => judged.filter(({ holds }) => !holds);

test('nodes are restarted one by one, in maintenance and without', () => {
  expect(broken(judgeRestart(report))).toEqual([]);
});

test('a node that joins has its share, and one that is decommissioned ends empty', () => {
  expect(broken(judgeChange({ ...report.change, load: report.load }))).toEqual([]);
});

test('a node that dies for good is made up for, whether it was a master or not', () => {
  expect(report.deaths.flatMap((death) => broken(judgeDeath({ ...death, load: report.load })))).toEqual([]);
});

test('no request of a client fails meanwhile, and what they hold stays theirs', () => {
  expect(broken([judgeLoad(report.load)])).toEqual([]);
});
