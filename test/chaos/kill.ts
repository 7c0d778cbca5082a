/**
 * Nodes are killed under load, again and again, and what clients saw is checked.
 *
 * K1. A node is killed only while requests are in flight at it.
 * K2. Every other kill is of the leader of the range, so a third of all at the least.
 * K3. Moments and pauses come from the seed; the machine adds its own chance, so a seed does not repeat a run exactly.
 */
import { type Random, SeededRandom } from '@remora/base';
import { pause } from '../e2e/eventually.ts';
import { type Cluster, withCluster } from '../e2e/harness.ts';
import { killAt, MOMENTS, type Moment } from './kill-moment.ts';
import { type Evidence, evidenceOf, faultsOf } from './verdict.ts';
import { Workload } from './workload.ts';

export interface KillRunOptions {
  readonly kills: number;
  readonly seed: number;
  readonly say?: (line: string) => void;
}

export interface Kill {
  readonly node: number;
  readonly leader: boolean;
  readonly moment: Moment;
  /** Requests at the node that were never answered. */
  readonly inFlight: number;
  readonly atNs: number;
  /** No other node was down before this one was back, so that a majority was there all the time. */
  readonly alone: boolean;
}

export interface KillReport {
  readonly seed: number;
  readonly kills: readonly Kill[];
  readonly operations: number;
  readonly acknowledged: number;
  readonly unknown: number;
  /** Refused with a definite error, by code. */
  readonly failed: Readonly<Record<string, number>>;
  readonly lockTurns: number;
  /** From the kill of a leader alone to the first write that began after it and was acknowledged, in ms. */
  readonly outagesMs: { readonly median: number; readonly longest: number };
  readonly durationMs: number;
  readonly faults: readonly string[];
}

/** Checkpoints come several times a second, so that kills meet them. */
const FLAGS = { 'checkpoint-interval': '300ms', 'checkpoint-bytes': '64KiB', 'log-level': 'info' };

export async function runKills(
  options: KillRunOptions,
): Promise<{ readonly report: KillReport; readonly evidence: Evidence }> {
  const begun = performance.now();
  return withCluster({ flags: FLAGS }, async (cluster) => {
    const workload = new Workload({ endpoints: cluster.endpoints, seed: options.seed, thinkMs: 8 });
    await workload.start();
    const kills: Kill[] = [];
    try {
      await pause(500);
      await killRepeatedly(cluster, workload, options, kills);
      await workload.stop();
      const evidence = await evidenceOf(workload);
      const report = reportOf({ options, kills, workload, evidence, durationMs: performance.now() - begun });
      // Within the cluster's scope, so that its data is kept when there is something to look at.
      if (report.faults.length > 0) throw new Error(`seed ${options.seed}:\n${report.faults.slice(0, 20).join('\n')}`);
      return { report, evidence };
    } finally {
      await workload.stop();
      await workload.close();
    }
  });
}

async function killRepeatedly(
  cluster: Cluster,
  workload: Workload,
  { kills: count, seed, say = () => {} }: KillRunOptions,
  kills: Kill[],
): Promise<void> {
  const random = new SeededRandom(seed ^ 0x6b696c6c);
  while (kills.length < count) {
    workload.nextRound();
    const round = [await killOne(cluster, workload, { random, earlier: kills })];
    // Now and then a second one, before the first is back: no majority for a while.
    if (kills.length + 1 < count && random.int(4) === 0) {
      await pause(random.int(1_000));
      round.push(await killOne(cluster, workload, { random, earlier: [...kills, ...round], down: round[0]?.node }));
    }
    for (const kill of round) kills.push({ ...kill, alone: round.length === 1 });
    await pause(random.int(2_000));
    for (const { node } of round) cluster.node(node).start();
    await cluster.untilReady();
    await pause(300 + random.int(700));
    for (const { node, leader, moment, inFlight } of round) {
      say(`killed n${node}${leader ? ', the leader,' : ''} at ${moment} with ${inFlight} requests in flight`);
    }
  }
}

/** Kills one more node; with one `down` there may be no leader to look for. */
async function killOne(
  cluster: Cluster,
  workload: Workload,
  {
    random,
    earlier,
    down,
  }: { readonly random: Random; readonly earlier: readonly Pick<Kill, 'leader'>[]; readonly down?: number | undefined },
): Promise<Omit<Kill, 'alone'>> {
  const leader = down === undefined ? await cluster.leader() : undefined;
  const others = cluster.nodes.map((_, i) => i + 1).filter((n) => n !== down && n !== leader);
  const other = others[random.int(others.length)] ?? 1;
  // K2. Where the leader's turn finds none, the next one makes up for it.
  const n = leader !== undefined && earlier.filter((kill) => kill.leader).length * 2 <= earlier.length ? leader : other;
  const node = cluster.node(n);
  let inFlight = 0;
  const moment = await killAt(node, {
    // With every other kill the leader's, all pairs of role and moment come round.
    moment: MOMENTS[earlier.length % MOMENTS.length] ?? 'append',
    random,
    busy: () => {
      inFlight = workload.inFlight(node.client);
      return inFlight > 0;
    },
  });
  const atNs = performance.now() * 1e6;
  await node.exit;
  return { node: n, leader: n === leader, moment, inFlight, atNs };
}

function reportOf(run: {
  readonly options: KillRunOptions;
  readonly kills: readonly Kill[];
  readonly workload: Workload;
  readonly evidence: Evidence;
  readonly durationMs: number;
}): KillReport {
  const { evidence, kills, workload } = run;
  const all = [...evidence.registers, ...evidence.lists, ...evidence.locks];
  return {
    seed: run.options.seed,
    kills,
    operations: all.length,
    acknowledged: all.filter(({ t1 }) => t1 !== null).length,
    unknown: all.filter(({ t1 }) => t1 === null).length,
    failed: Object.fromEntries(workload.failures),
    lockTurns: evidence.locks.filter(({ op, ok }) => op === 'acquire' && ok).length,
    outagesMs: outages(evidence, kills),
    durationMs: Math.round(run.durationMs),
    faults: faultsOf(evidence),
  };
}

function outages(evidence: Evidence, kills: readonly Kill[]): { readonly median: number; readonly longest: number } {
  const writes = [...evidence.registers, ...evidence.lists].filter(({ op, ok }) => ok && op !== 'get');
  const lengths = kills
    .filter(({ leader, alone }) => leader && alone)
    .map(({ atNs }) => {
      const ends = writes.flatMap(({ t0, t1 }) => (t0 >= atNs && t1 !== null ? [t1] : []));
      return Math.round((ends.reduce((first, t1) => Math.min(first, t1), Number.POSITIVE_INFINITY) - atNs) / 1e6);
    })
    .sort((a, b) => a - b);
  return { median: lengths[lengths.length >> 1] ?? 0, longest: lengths.at(-1) ?? 0 };
}
