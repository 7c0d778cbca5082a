/**
 * What many locks cost that are held and not used, in many sessions that send their heartbeats, with many waiters for
 * one more: memory and CPU time of each node, before and while they are there.
 *
 * Settings: sessions=1000  locks=100 (of each session)  ttl=30000 (ms)  waiters=10000  idle=30 (s, of each look)
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'remora';
import { eventually } from '../../../test/e2e/eventually.ts';
import { type Cluster, withCluster } from '../../../test/e2e/harness.ts';
import { cpuMicros, pssBytes } from '../../proc.ts';
import type { CaseBar, CaseContext, CaseResult } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';
import { startHolders, WAITED_FOR } from '../holders.ts';

/** Time for what has been acquired to be checkpointed and collected. */
const SETTLE_MS = 10_000;
const TIMEOUT_MS = 120_000;
const MEGABYTES_MAX = 500;
const CPU_PERCENT_MAX = 10;

interface Look {
  readonly when: string;
  /** Of each node, of one core. */
  readonly cpuPercent: readonly number[];
  readonly pssBytes: readonly number[];
}

export const SETTINGS = ['sessions', 'locks', 'ttl', 'waiters', 'idle'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const [sessions, locks] = [setting(context, 'sessions', 1_000), setting(context, 'locks', 100)];
  const waiters = setting(context, 'waiters', 10_000);
  const looks = await withCluster({}, async (cluster) => {
    const { endpoints } = cluster;
    const before = await look(context, cluster, 'nothing held');
    const spec = { endpoints, sessions, ttlMs: setting(context, 'ttl', 30_000), locks, waiters };
    const begunMs = performance.now();
    const holders = await startHolders(spec, join(context.dir, 'holders'));
    context.progress(`${sessions * locks} locks acquired in ${((performance.now() - begunMs) / 1_000).toFixed(1)} s`);
    try {
      if (waiters > 0) await untilQueued(endpoints, waiters);
      return [before, await look(context, cluster, `${sessions * locks} held, ${waiters} wait`)];
    } finally {
      await holders.stop();
    }
  });
  return { data: looks, text: render(looks), bars: looks.slice(1).flatMap(bars) };
}

async function untilQueued(endpoints: readonly string[], waiters: number): Promise<void> {
  await using client = await connect({ endpoints });
  await eventually('all wait', async () => (await client.locks.show(WAITED_FOR))?.waiterCount === waiters, {
    timeoutMs: TIMEOUT_MS,
    pollMs: 200,
  });
}

async function look(context: CaseContext, cluster: Cluster, when: string): Promise<Look> {
  await pause(SETTLE_MS);
  const pids = cluster.nodes.map(({ pid }) => pid);
  const [before, begunMs] = [pids.map(cpuMicros), performance.now()];
  await pause(setting(context, 'idle', 30) * 1_000);
  const elapsedMicros = (performance.now() - begunMs) * 1_000;
  const cpuPercent = pids.map((pid, i) => (100 * (cpuMicros(pid) - (before[i] ?? 0))) / elapsedMicros);
  const seen = { when, cpuPercent, pssBytes: pids.map(pssBytes) };
  context.progress(JSON.stringify(seen));
  return seen;
}

function render(looks: readonly Look[]): string {
  const rows = looks.map(({ when, cpuPercent, pssBytes: memory }) => [
    when,
    cpuPercent.map((percent) => percent.toFixed(1)).join(' '),
    memory.map((bytes) => megabytes(bytes).toFixed(0)).join(' '),
  ]);
  return table(['', '% of a core, by node', 'PSS MB, by node'], rows);
}

function bars({ when, cpuPercent, pssBytes: memory }: Look): readonly CaseBar[] {
  const [percent, size] = [Math.max(...cpuPercent), megabytes(Math.max(...memory))];
  return [
    { text: `${when}: under ${MEGABYTES_MAX} MB per node`, value: size, unit: ' MB', met: size < MEGABYTES_MAX },
    {
      text: `${when}: under ${CPU_PERCENT_MAX} % of a core per node`,
      value: percent,
      unit: ' %',
      met: percent < CPU_PERCENT_MAX,
    },
  ];
}

function megabytes(bytes: number): number {
  return bytes / 2 ** 20;
}
