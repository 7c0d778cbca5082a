/**
 * What a flood of log-ins does to others: puts of one client, and the synced writes of the nodes, by turns without a
 * flood, with one at the leader of the range, and with one at all nodes. A node hashes one password at a time, in a
 * thread that does not serve the disk; what waits for it is bounded, and the rest is refused.
 *
 * The clients of a flood take processor time from the nodes that they share a machine with. So there are floods of
 * requests that a node answers at once (`requests`), by the same clients: what a flood of log-ins does beyond that is
 * what log-ins cost others.
 *
 * A sync is measured in the node from the call to its callback (sync-times.mjs).
 *
 * Settings: writers=8  every=10 (ms from the beginning of a writer's put to that of its next)  clients=12 (of each of
 * ten addresses)
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'remora';
import { eventually, pause } from '../../../test/e2e/eventually.ts';
import { type Cluster, withCluster } from '../../../test/e2e/harness.ts';
import { Child } from '../../../test/support/child.ts';
import { median, quantile } from '../../../test/support/quantile.ts';
import { compiledBench } from '../../compiled-bench.ts';
import type { CaseContext, CaseResult } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { setting } from '../bed.ts';
import type { FloodArguments } from '../log-in-flood-main.ts';
import { Writers } from '../writers.ts';

export const SETTINGS = ['writers', 'every', 'clients'];

type Sends = FloodArguments['sends'];

interface Flood {
  readonly at: 'none' | 'leader' | 'all';
  readonly sends: Sends;
}

const FLOODS: readonly Flood[] = [
  { at: 'none', sends: 'requests' },
  { at: 'leader', sends: 'requests' },
  { at: 'leader', sends: 'log-ins' },
  { at: 'all', sends: 'requests' },
  { at: 'all', sends: 'log-ins' },
];

const PASSWORD = 'only on loopback';
const ADDRESSES = 10;
const WARM_UP_MS = 3_000;
const SETTLE_MS = 1_000;

interface Figures {
  readonly flood: Flood;
  readonly putsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the node that leads the range. */
  readonly syncP50Ms: number;
  readonly syncP99Ms: number;
  readonly failures: number;
  /** Log-ins per second whose password was hashed, and requests that were answered at once: log-ins by a refusal. */
  readonly hashedPerSecond: number;
  readonly atOncePerSecond: number;
}

export async function run(context: CaseContext): Promise<CaseResult> {
  const file = join(context.dir, 'root.password');
  writeFileSync(file, PASSWORD, { mode: 0o600 });
  const flags = { 'auto-split': 'false', 'initial-root-password-file': file };
  const nodeArguments = ['--import', join(context.root, 'bench/ranges/sync-times.mjs')];
  const measured = await withCluster({ flags, nodeArguments }, (cluster) => measureAll(context, cluster));
  return { data: measured, text: render(measured), bars: [] };
}

async function measureAll(context: CaseContext, cluster: Cluster): Promise<readonly Figures[]> {
  await using client = await connect({ endpoints: cluster.endpoints, user: 'root', password: PASSWORD });
  const keys = Array.from({ length: setting(context, 'writers', 8) }, (_, i) => `put/${i}`);
  const load = new Writers(client, keys, setting(context, 'every', 10));
  const measured: Figures[] = [];
  try {
    await pause(WARM_UP_MS);
    for (let i = 0; i < context.runs; i++) {
      for (const flood of FLOODS) measured.push(await measure(context, { cluster, load, flood }));
    }
  } finally {
    await load.stop();
  }
  return measured;
}

interface Measuring {
  readonly cluster: Cluster;
  readonly load: Writers;
  readonly flood: Flood;
}

async function measure(context: CaseContext, { cluster, load, flood }: Measuring): Promise<Figures> {
  const leader = cluster.node(await cluster.leader());
  const flooded = flood.at === 'none' ? [] : flood.at === 'leader' ? [leader] : cluster.nodes;
  const nodes = flooded.map(({ http }) => http);
  const child = nodes.length === 0 ? undefined : startFlood(context, nodes, flood.sends);
  try {
    await pause(SETTLE_MS);
    if (child !== undefined && flood.sends === 'log-ins') await untilHashed(child);
    const before = await countsOf(child);
    await leader.ask({ type: 'syncs' });
    const [fromMs, failed] = [performance.now(), failuresOf(load)];
    await pause(context.seconds * 1_000);
    const toMs = performance.now();
    const { tookMs: syncs } = (await leader.ask({ type: 'syncs' })) as { readonly tookMs: number[] };
    const after = await countsOf(child);
    const puts = load.latencies({ fromMs, toMs });
    const perSecond = (count: number): number => (1_000 * count) / (toMs - fromMs);
    return {
      ...{ flood, putsPerSecond: perSecond(puts.length), failures: failuresOf(load) - failed },
      ...{ p50Ms: quantile(puts, 0.5), p99Ms: quantile(puts, 0.99) },
      ...{ syncP50Ms: quantile(syncs, 0.5), syncP99Ms: quantile(syncs, 0.99) },
      hashedPerSecond: perSecond(after.hashed - before.hashed),
      atOncePerSecond: perSecond(after.atOnce - before.atOnce),
    };
  } finally {
    await child?.stop();
    await pause(SETTLE_MS);
  }
}

function startFlood(context: CaseContext, nodes: readonly string[], sends: Sends): Child {
  const flood: FloodArguments = { nodes, addresses: ADDRESSES, clients: setting(context, 'clients', 12), sends };
  const program = compiledBench(context.root, 'ranges/log-in-flood-main.js');
  return new Child({
    command: [process.execPath, program, JSON.stringify(flood)],
    cwd: context.dir,
    logPath: join(context.dir, 'flood.log'),
  });
}

interface Counts {
  readonly hashed: number;
  readonly atOnce: number;
}

/** A flood whose log-ins are all refused before says nothing about log-ins. */
async function untilHashed(child: Child): Promise<void> {
  await eventually('a password of the flood is hashed', async () => (await countsOf(child)).hashed > 0);
}

async function countsOf(child: Child | undefined): Promise<Counts> {
  if (child === undefined) return { hashed: 0, atOnce: 0 };
  child.send({});
  return (await child.message('counts')) as unknown as Counts;
}

function failuresOf({ failures }: Writers): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0);
}

function render(measured: readonly Figures[]): string {
  const head = ['flood at', 'of', 'puts/s', 'put p50 ms', 'p99 ms', 'each run', 'sync p50 ms', 'p99 ms', 'each run'];
  const rows = FLOODS.map((flood) => {
    const runs = measured.filter((each) => each.flood.at === flood.at && each.flood.sends === flood.sends);
    const of = (pick: (figures: Figures) => number): number => median(runs.map(pick));
    const each = (pick: (figures: Figures) => number): string => runs.map((run) => pick(run).toFixed(1)).join(' ');
    const failures = runs.reduce((sum, run) => sum + run.failures, 0);
    return [
      failures === 0 ? flood.at : `${flood.at} (${failures} puts failed)`,
      flood.at === 'none' ? '' : flood.sends,
      of(({ putsPerSecond }) => putsPerSecond).toFixed(0),
      of(({ p50Ms }) => p50Ms).toFixed(2),
      of(({ p99Ms }) => p99Ms).toFixed(2),
      each(({ p99Ms }) => p99Ms),
      of(({ syncP50Ms }) => syncP50Ms).toFixed(2),
      of(({ syncP99Ms }) => syncP99Ms).toFixed(2),
      each(({ syncP99Ms }) => syncP99Ms),
      of(({ hashedPerSecond }) => hashedPerSecond).toFixed(1),
      of(({ atOncePerSecond }) => atOncePerSecond).toFixed(0),
    ];
  });
  return table([...head, 'log-ins/s', 'at once/s'], rows);
}
