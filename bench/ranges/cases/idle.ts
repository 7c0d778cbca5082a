/**
 * What ranges cost that nobody uses, as their number grows: CPU time and memory of three nodes.
 *
 * Each number of ranges has a cluster of its own, which begins with them (`--pre-split-count`). The measurement begins
 * some time after every range has a leader: until then the masters spread the leaders over the nodes.
 *
 * Settings: ranges=1000  settle=60 (seconds)
 */
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../test/e2e/eventually.ts';
import { type Cluster, withCluster } from '../../../test/e2e/harness.ts';
import { cpuMicros, pssBytes } from '../../proc.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { setting } from '../bed.ts';

const SETTLED_TIMEOUT_MS = 300_000;
/** CPU time is charged in steps of 10 ms: a short measurement says little. */
const SECONDS_MIN = 20;

interface Idle {
  readonly ranges: number;
  /** Of one core, each node. */
  readonly cpuPercent: readonly number[];
  readonly pssBytes: readonly number[];
}

/** The most that a node should take. */
const LIMITS: Readonly<Record<number, { readonly cpuPercent: number; readonly megabytes?: number }>> = {
  1000: { cpuPercent: 6 },
  10000: { cpuPercent: 15, megabytes: 600 },
};

export const SETTINGS = ['ranges', 'settle'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured: Idle[] = [];
  for (const ranges of numbersOf(context, 'ranges', [1_000])) {
    const result = await measure(context, ranges);
    measured.push(result);
    context.progress(`${ranges} ranges: ${most(result.cpuPercent).toFixed(1)} % of a core`);
  }
  return { data: measured, text: render(measured), bars: measured.flatMap(bars) };
}

function measure(context: CaseContext, ranges: number): Promise<Idle> {
  return withCluster({ flags: { 'pre-split-count': String(ranges) } }, async (cluster) => {
    await eventually('every range has a leader', async () => (await ledIn(cluster)) >= ranges, {
      timeoutMs: SETTLED_TIMEOUT_MS,
      pollMs: 1_000,
    });
    await pause(1_000 * setting(context, 'settle', 60));
    const pids = cluster.nodes.map(({ pid }) => pid);
    const before = pids.map(cpuMicros);
    const begunMs = performance.now();
    await pause(1_000 * Math.max(SECONDS_MIN, context.seconds));
    const elapsedMicros = 1_000 * (performance.now() - begunMs);
    const cpuPercent = pids.map((pid, i) => (100 * (cpuMicros(pid) - (before[i] ?? 0))) / elapsedMicros);
    return { ranges, cpuPercent, pssBytes: pids.map(pssBytes) };
  });
}

/** How many ranges have a leader. */
async function ledIn(cluster: Cluster): Promise<number> {
  const all = await Promise.all(cluster.nodes.map((node) => node.metrics('remora_range_leader')));
  return all.reduce((sum, leaders) => sum + [...leaders.values()].filter((leads) => leads === 1).length, 0);
}

function most(values: readonly number[]): number {
  return Math.max(...values);
}

function megabytes(bytes: number): number {
  return bytes / 2 ** 20;
}

function render(measured: readonly Idle[]): string {
  const rows = measured.map(({ ranges, cpuPercent, pssBytes: pss }) => [
    String(ranges),
    cpuPercent.map((each) => each.toFixed(1)).join(' '),
    pss.map((each) => megabytes(each).toFixed(0)).join(' '),
  ]);
  return table(['ranges', 'CPU % of each node', 'PSS MB of each node'], rows);
}

function bars({ ranges, cpuPercent, pssBytes: pss }: Idle): readonly CaseBar[] {
  const limits = LIMITS[ranges];
  if (limits === undefined) return [];
  const name = `${ranges} idle ranges: the node that takes most`;
  const cpu = most(cpuPercent);
  const cpuText = `${name}, at most ${limits.cpuPercent} % of a core`;
  const found: CaseBar[] = [{ text: cpuText, value: cpu, unit: ' %', met: cpu <= limits.cpuPercent }];
  if (limits.megabytes === undefined) return found;
  const value = megabytes(most(pss));
  const text = `${name}, at most ${limits.megabytes} MB`;
  return [...found, { text, value, unit: ' MB', met: value <= limits.megabytes }];
}
