/** The short form of `pnpm nodes`: everything happens to one cluster, one thing after the other, under one load. */
import { beforeAll, expect, test } from 'vitest';
import type { Judged } from '../report.ts';
import { type ChangeReport, join, leave } from './change.ts';
import { type DeathReport, die, type Victim } from './death.ts';
import { judgeChange, judgeDeath, judgeLoad, judgeRestart } from './nodes-verdict.ts';
import { type RestartReport, restart } from './restart.ts';
import { type LoadReport, type Stage, type StageOptions, withStage } from './stage.ts';

const OPTIONS: StageOptions = {
  ...{ ranges: 6, clients: 3, seed: 1, measureSeconds: 0, ratePerSecond: 40 },
  ...{ calmSeconds: 1, downAfterMs: 3_000, settleMs: 0 },
};

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
    const deaths = [await deathOf(stage, 'data'), await deathOf(stage, 'master')];
    return { nodes, change, deaths, load: await stage.finish() };
  });
}, 240_000);

async function deathOf(stage: Stage, victim: Victim): Promise<Omit<DeathReport, 'load'>> {
  const { ranges, downAfterMs } = OPTIONS;
  return { victim, ranges, downAfterMs, ...(await die(stage, victim)) };
}

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
  expect(judgeLoad(report.load)).toMatchObject({ holds: true });
});
