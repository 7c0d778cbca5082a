/**
 * Operations per second, latency, and CPU time per operation, for one group and for many, beside the bare pipeline
 * (test/bench/bare-pipeline.mjs), whose cycle is two operations.
 *
 * Every kind of load is run in every round, so that what else the machine does meets all of them alike; the median
 * over the rounds counts. `single`: every operation is a Raft entry. `batched`: the operations that one loop turn of
 * the load makes for a group share one, as those of a range do in the product.
 *
 * Settings: log=memory,disk  payload=16,256  inflight=1,64,256 (one group)  groups=64  per-group=16 (many groups)
 * entries=single,batched  leaders=one (one | spread: who leads the many groups)  bare=yes (yes | no)
 */
import { BareSystem } from '../../bare-system.ts';
import { measureRun, type RunResult } from '../../measure.ts';
import { median } from '../../quantile.ts';
import { type Summary, summaryOf, table } from '../../report.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf, wordsOf } from '../case.ts';
import { RaftCluster } from '../cluster.ts';
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
}

interface Bare {
  readonly inflight: number;
  readonly runs: RunResult[];
}

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
      loads: measured.map(({ load, runs }) => ({ ...load, ...summaryOf(loadReport(runs)), runs })),
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
  const one = await RaftCluster.start(context, { name: `${log}-1`, groupCount: 1, log });
  const several =
    many === 0
      ? undefined
      : await RaftCluster.start(context, { name: `${log}-${many}`, groupCount: many, log, leaders });
  const measured = loadsOf(context, log, many).map((load): Measured => ({ load, runs: [] }));
  if (bare !== undefined) bares.push(...inflights(context).map((inflight): Bare => ({ inflight, runs: [] })));
  try {
    for (let round = 0; round < context.runs; round++) {
      if (bare !== undefined) {
        for (const { inflight, runs } of bares) {
          const spec = { workload: 'lock', inflight, seconds: context.seconds } as const;
          runs.push(await measureRun(bare, spec, context.dir));
          tell(context, `bare × ${inflight}`, runs, 2);
        }
      }
      for (const { load, runs } of measured) {
        const cluster = load.groups === 1 ? one : several;
        if (cluster === undefined) continue;
        const { groups, inflight, payloadBytes, entries } = load;
        const { seconds } = context;
        runs.push(await cluster.load({ inflightPerGroup: inflight / groups, payloadBytes, entries, seconds }));
        tell(context, `${log}, ${groups} × ${inflight / groups}, ${payloadBytes} B, ${entries}`, runs, 1);
      }
    }
  } finally {
    await Promise.all([one.stop(), several?.stop()]);
  }
  return measured;
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

/** The median over the rounds of what this load did against what bare did in the same round, in operations per second. */
function ratioTo(bare: Bare | undefined, runs: readonly RunResult[]): number | undefined {
  if (bare === undefined) return undefined;
  const ratios = runs.flatMap(({ opsPerSecond }, round) => {
    const other = bare.runs[round];
    return other === undefined ? [] : [opsPerSecond / (2 * other.opsPerSecond)];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}

function render(measured: readonly Measured[], bares: readonly Bare[]): string {
  const head = [
    'log',
    'groups',
    'in flight',
    'bytes',
    'entries',
    'ops/s',
    'p50 ms',
    'p99 ms',
    'vs bare',
    'CPU µs per op',
  ];
  const rows = measured.map(({ load, runs }) => {
    const summary = summaryOf(loadReport(runs));
    const bare = bareFor(load, bares);
    const shown = [load.log, load.groups, load.inflight, load.payloadBytes, load.entries].map(String);
    return [...shown, ...figures(summary, 1), ratioTo(bare, runs)?.toFixed(2) ?? '', cpu(summary, 1)];
  });
  const floor = bares.map(({ inflight, runs }) => {
    const summary = summaryOf(loadReport(runs));
    return ['bare', '', String(inflight), '', '2 a cycle', ...figures(summary, 2), '', cpu(summary, 2)];
  });
  return table(head, [...rows, ...floor]);
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
        atLeast(0.5, ratioTo(bareFor(busy.load, bares), busy.runs), {
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
  if (bare === undefined) return undefined;
  const ratios = runs.flatMap(({ p50Ms }, round) => {
    const other = bare.runs[round];
    return other === undefined ? [] : [p50Ms / (other.p50Ms / 2)];
  });
  const value = median(ratios);
  const text = `${load.entries} entries, one group, one in flight: p50 at most 1.5 of half a cycle of the bare pipeline`;
  return { text, value, unit: '×', met: value <= 1.5 };
}

function againstOne(many: Measured, one: Measured): number {
  return median(
    many.runs.map(({ opsPerSecond }, round) => opsPerSecond / (one.runs[round]?.opsPerSecond ?? opsPerSecond)),
  );
}
