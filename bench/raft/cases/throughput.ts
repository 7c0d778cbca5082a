/**
 * Operations per second, latency, and CPU time per operation, for one group and for many, beside the bare pipeline
 * (bench/bare-pipeline.mjs), whose cycle is two operations.
 *
 * Every kind of load is run in every round, so that what else the machine does meets all of them alike; the median
 * over the rounds counts. `single`: every operation is a Raft entry. `batched`: the operations that one loop turn of
 * the load makes for a group share one, as those of a range do in the product.
 *
 * Settings: log=memory,disk  payload=16,256  inflight=1,64,256 (one group)  groups=64  per-group=16 (many groups)
 * entries=single,batched  leaders=one (one | spread: who leads the many groups)  bare=yes (yes | no)
 */

import { median } from '../../../test/support/quantile.ts';
import { BareSystem } from '../../bare-system.ts';
import { measureRun, type RunResult } from '../../measure.ts';
import { type Summary, summaryOf, table } from '../../report.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf, wordsOf } from '../case.ts';
import { type ClusterOptions, RaftCluster } from '../cluster.ts';
import { ENTRY_MODES, type EntryMode } from '../messages.ts';

const LOGS = ['memory', 'disk'] as const;
const BAR_PAYLOAD_BYTES = 16;

interface Load {
  readonly log: (typeof LOGS)[number];
  readonly groups: number;
  readonly inflight: number;
  readonly payloadBytes: number;
  readonly entries: EntryMode;
}

interface Measured {
  readonly load: Load;
  readonly runs: RunResult[];
  /** The same load on the nodes of the baseline. */
  readonly before: RunResult[];
}

interface Bare {
  readonly inflight: number;
  readonly runs: RunResult[];
}

export const SETTINGS = ['log', 'payload', 'inflight', 'groups', 'per-group', 'entries', 'leaders', 'bare'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const bare = await startBare(context);
  const measured: Measured[] = [];
  const bares: Bare[] = [];
  try {
    for (const log of wordsOf(context, 'log', LOGS)) {
      measured.push(...(await measureLog(context, log, log === 'disk' ? bare : undefined, bares)));
    }
  } finally {
    await bare?.stop();
  }
  return {
    data: {
      loads: measured.map(({ load, runs, before }) => ({ ...load, ...summaryOf(loadReport(runs)), runs, before })),
      bare: bares.map(({ inflight, runs }) => ({ inflight, ...summaryOf(loadReport(runs)), runs })),
    },
    text: render(measured, bares),
    bars: bars(measured, bares),
  };
}

async function startBare(context: CaseContext): Promise<BareSystem | undefined> {
  if (wordsOf(context, 'bare', ['yes', 'no'])[0] === 'no') return undefined;
  const bare = new BareSystem(context);
  await bare.start();
  return bare;
}

/** All loads on one kind of log, by turns. */
async function measureLog(
  context: CaseContext,
  log: Load['log'],
  bare: BareSystem | undefined,
  bares: Bare[],
): Promise<readonly Measured[]> {
  const many = numbersOf(context, 'groups', [64])[0] ?? 0;
  const [leaders = 'one'] = wordsOf(context, 'leaders', ['one', 'spread'] as const);
  const measured = loadsOf(context, log, many).map((load): Measured => ({ load, runs: [], before: [] }));
  if (bare !== undefined) bares.push(...inflights(context).map((inflight): Bare => ({ inflight, runs: [] })));
  const clusters = new Clusters(context, { log, leaders });
  try {
    for (let round = 0; round < context.runs; round++) {
      if (bare !== undefined) await measureBare(context, bare, bares);
      for (const { load, runs, before } of measured) {
        if (context.baseline !== undefined) before.push(await clusters.load(load, context.baseline));
        runs.push(await clusters.load(load, undefined));
        const { groups, inflight, payloadBytes, entries } = load;
        tell(context, `${log}, ${groups} × ${inflight / groups}, ${payloadBytes} B, ${entries}`, runs, 1);
      }
    }
    await clusters.agree();
  } finally {
    await clusters.stop();
  }
  return measured;
}

async function measureBare(context: CaseContext, bare: BareSystem, bares: readonly Bare[]): Promise<void> {
  for (const { inflight, runs } of bares) {
    runs.push(await measureRun(bare, { workload: 'lock', inflight, seconds: context.seconds }, context.dir));
    tell(context, `bare × ${inflight}`, runs, 2);
  }
}

/** Clusters are started when they are first loaded. */
class Clusters {
  readonly #context: CaseContext;
  readonly #kind: Pick<ClusterOptions, 'log' | 'leaders'>;
  readonly #clusters = new Map<string, RaftCluster>();

  constructor(context: CaseContext, kind: Pick<ClusterOptions, 'log' | 'leaders'>) {
    this.#context = context;
    this.#kind = kind;
  }

  async load({ groups, inflight, payloadBytes, entries }: Load, baseline: string | undefined): Promise<RunResult> {
    const name = `${this.#kind.log}-${groups}${baseline === undefined ? '' : '-before'}`;
    let cluster = this.#clusters.get(name);
    if (cluster === undefined) {
      const root = baseline ?? this.#context.root;
      cluster = await RaftCluster.start(this.#context, { ...this.#kind, name, groupCount: groups, root });
      this.#clusters.set(name, cluster);
    }
    return cluster.load({ inflightPerGroup: inflight / groups, payloadBytes, entries, seconds: this.#context.seconds });
  }

  async agree(): Promise<void> {
    await Promise.all([...this.#clusters.values()].map((cluster) => cluster.agree()));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#clusters.values()].map((cluster) => cluster.stop()));
  }
}

function loadsOf(context: CaseContext, log: Load['log'], many: number): readonly Load[] {
  const loads: Load[] = [];
  for (const payloadBytes of numbersOf(context, 'payload', [16, 256])) {
    for (const entries of wordsOf(context, 'entries', ENTRY_MODES)) {
      for (const inflight of inflights(context)) loads.push({ log, groups: 1, inflight, payloadBytes, entries });
      if (many === 0) continue;
      for (const each of numbersOf(context, 'per-group', [16])) {
        loads.push({ log, groups: many, inflight: each * many, payloadBytes, entries });
      }
    }
  }
  return loads;
}

function inflights(context: CaseContext): readonly number[] {
  return numbersOf(context, 'inflight', [1, 64, 256]);
}

function tell(context: CaseContext, what: string, runs: readonly RunResult[], operations: number): void {
  const last = runs.at(-1);
  if (last === undefined) return;
  const { opsPerSecond, p50Ms } = last;
  context.progress(`${what}: ${(operations * opsPerSecond).toFixed(0)}/s, p50 ${p50Ms.toFixed(2)} ms`);
}

// ------------------------------------------------------------------------------------------------ report

function loadReport(runs: readonly RunResult[]): Parameters<typeof summaryOf>[0] {
  return { case: 'put', inflight: 0, system: 'raft', runs };
}

/** The median over the rounds of a figure against another's in the same round; undefined without rounds of both. */
function ratio(
  runs: readonly RunResult[],
  others: readonly RunResult[],
  figure: (run: RunResult) => number,
): number | undefined {
  const ratios = runs.flatMap((run, round) => {
    const other = others[round];
    return other === undefined ? [] : [figure(run) / figure(other)];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}

/** Operations per second against those of bare. */
function ratioToBare(bare: Bare | undefined, runs: readonly RunResult[]): number | undefined {
  const cycles = ratio(runs, bare?.runs ?? [], ({ opsPerSecond }) => opsPerSecond);
  return cycles === undefined ? undefined : cycles / 2;
}

/** CPU time per operation of all nodes together. */
function nodesCpu({ processes }: RunResult): number {
  return processes.reduce((sum, { role, cpuMicrosPerOp }) => sum + (role === 'client' ? 0 : cpuMicrosPerOp), 0);
}

function shown(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(2);
}

function render(measured: readonly Measured[], bares: readonly Bare[]): string {
  const head = ['log', 'groups', 'in flight', 'bytes', 'entries', 'ops/s', 'p50 ms', 'p99 ms', 'vs bare'];
  const compared = measured.some(({ before }) => before.length > 0);
  const rows = measured.map(({ load, runs, before }) => {
    const what = [load.log, load.groups, load.inflight, load.payloadBytes, load.entries].map(String);
    const toBare = shown(ratioToBare(bareFor(load, bares), runs));
    const toBefore = [
      ratio(runs, before, (run) => run.opsPerSecond),
      ratio(runs, before, (run) => run.p50Ms),
      ratio(runs, before, nodesCpu),
    ].map(shown);
    const summary = summaryOf(loadReport(runs));
    return [...what, ...figures(summary, 1), toBare, ...(compared ? toBefore : []), cpu(summary, 1)];
  });
  const floor = bares.map(({ inflight, runs }) => {
    const summary = summaryOf(loadReport(runs));
    const what = ['bare', '', String(inflight), '', '2 a cycle'];
    return [...what, ...figures(summary, 2), '', ...(compared ? ['', '', ''] : []), cpu(summary, 2)];
  });
  const titles = [...head, ...(compared ? ['vs before: ops/s', 'p50', 'CPU'] : []), 'CPU µs per op'];
  return table(titles, [...rows, ...floor]);
}

function bareFor({ log, groups, inflight }: Load, bares: readonly Bare[]): Bare | undefined {
  return log === 'disk' && groups === 1 ? bares.find((bare) => bare.inflight === inflight) : undefined;
}

function figures({ opsPerSecond, p50Ms, p99Ms, errors }: Summary, operations: number): readonly string[] {
  const failed = errors === 0 ? '' : ` (${errors} refused)`;
  return [
    (operations * opsPerSecond).toFixed(0) + failed,
    (p50Ms / operations).toFixed(2),
    (p99Ms / operations).toFixed(2),
  ];
}

function cpu({ cpuMicrosPerOp }: Summary, operations: number): string {
  return cpuMicrosPerOp.map(({ role, micros }) => `${role} ${(micros / operations).toFixed(1)}`).join('  ');
}

function bars(measured: readonly Measured[], bares: readonly Bare[]): readonly CaseBar[] {
  const find = (groups: number, inflight: number | undefined, entries: EntryMode): Measured | undefined =>
    measured.find(
      ({ load }) =>
        load.log === 'disk' &&
        load.payloadBytes === BAR_PAYLOAD_BYTES &&
        (groups === 1 ? load.groups === 1 : load.groups > 1) &&
        (inflight === undefined || load.inflight === inflight) &&
        load.entries === entries,
    );
  return ENTRY_MODES.flatMap((entries) => {
    const [alone, busy, many] = [find(1, 1, entries), find(1, 256, entries), find(2, undefined, entries)];
    const found: (CaseBar | undefined)[] = [
      busy &&
        atLeast(0.5, ratioToBare(bareFor(busy.load, bares), busy.runs), {
          text: `${entries} entries, one group, 256 in flight: at least half of the operations of the bare pipeline`,
        }),
      alone && latencyBar(alone, bareFor(alone.load, bares)),
      many &&
        busy &&
        atLeast(0.6, againstOne(many, busy), {
          text: `${entries} entries, ${many.load.groups} groups, ${many.load.inflight} in flight: at least 0.6 of one group with 256`,
        }),
    ];
    return found.filter((bar) => bar !== undefined);
  });
}

function atLeast(limit: number, value: number | undefined, { text }: { readonly text: string }): CaseBar | undefined {
  return value === undefined ? undefined : { text, value, unit: '×', met: value >= limit };
}

function latencyBar({ load, runs }: Measured, bare: Bare | undefined): CaseBar | undefined {
  const toCycle = ratio(runs, bare?.runs ?? [], ({ p50Ms }) => p50Ms);
  if (toCycle === undefined) return undefined;
  const value = 2 * toCycle;
  const text = `${load.entries} entries, one group, one in flight: p50 at most 1.5 of half a cycle of the bare pipeline`;
  return { text, value, unit: '×', met: value <= 1.5 };
}

function againstOne(many: Measured, one: Measured): number | undefined {
  return ratio(many.runs, one.runs, ({ opsPerSecond }) => opsPerSecond);
}
