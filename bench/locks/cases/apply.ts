/**
 * What it costs a follower to apply commands about locks: acquires and releases of locks that nobody else wants, from
 * the bytes of log entries to the state of a range over an engine on disk, with its checkpoints. One process, no
 * network and no log: the figure is CPU time, collection of garbage and writing of checkpoints included, so a machine
 * that has other things to do disturbs it little. `--baseline` measures another tree by turns (built, with this case in
 * it).
 *
 * Settings: inflight=1,256 (acquires, or releases, in an entry)  locks=25600 (different ones)
 *   remembered=200000 (outcomes at a time)
 */
import { join } from 'node:path';
import { Child } from '../../../test/support/child.ts';
import { median } from '../../../test/support/quantile.ts';
import { compiledBench } from '../../compiled-bench.ts';
import { type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';

export interface ApplyArguments {
  /** The working tree whose packages are measured. */
  readonly tree: string;
  readonly dir: string;
  readonly seconds: number;
  readonly inflight: number;
  readonly locks: number;
  readonly remembered: number;
}

export interface ApplyReport {
  /** CPU time for an acquire and a release. */
  readonly microsPerPair: number;
  readonly pairs: number;
  /** Of the process at its end. */
  readonly rssBytes: number;
}

interface Measured {
  readonly inflight: number;
  readonly tree: 'this' | 'baseline';
  readonly runs: readonly ApplyReport[];
}

const MIB = 2 ** 20;

export const SETTINGS = ['inflight', 'locks', 'remembered'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured: Measured[] = [];
  for (const inflight of numbersOf(context, 'inflight', [1, 256])) {
    const runs: Record<Measured['tree'], ApplyReport[]> = { this: [], baseline: [] };
    for (let i = 0; i < context.runs; i++) {
      runs.this.push(await apply(context, { tree: context.root, inflight, dir: `${inflight}-${i}` }));
      if (context.baseline === undefined) continue;
      runs.baseline.push(await apply(context, { tree: context.baseline, inflight, dir: `${inflight}-${i}-baseline` }));
    }
    measured.push({ inflight, tree: 'this', runs: runs.this });
    if (context.baseline !== undefined) measured.push({ inflight, tree: 'baseline', runs: runs.baseline });
  }
  return { data: measured, text: render(measured), bars: [] };
}

async function apply(
  context: CaseContext,
  { tree, inflight, dir }: Pick<ApplyArguments, 'tree' | 'inflight' | 'dir'>,
): Promise<ApplyReport> {
  const args: ApplyArguments = {
    tree,
    inflight,
    dir: join(context.dir, dir),
    seconds: context.seconds,
    locks: setting(context, 'locks', 25_600),
    remembered: setting(context, 'remembered', 200_000),
  };
  const { profileDir, root } = context;
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profileDir, dir)}`];
  const child = new Child({
    command: [process.execPath, ...profile, compiledBench(root, 'locks/apply-main.js'), JSON.stringify(args)],
    cwd: context.dir,
    logPath: join(context.dir, `${dir}.log`),
  });
  const { microsPerPair, pairs, rssBytes } = await child.message('applied');
  await child.exit;
  const report = { microsPerPair: Number(microsPerPair), pairs: Number(pairs), rssBytes: Number(rssBytes) };
  context.progress(`${dir}: ${report.microsPerPair.toFixed(2)} µs, ${(report.rssBytes / MIB).toFixed(0)} MiB`);
  return report;
}

function render(measured: readonly Measured[]): string {
  const of = ({ runs }: Measured, pick: (report: ApplyReport) => number): number => median(runs.map(pick));
  const rows = measured.map((m) => {
    const base = measured.find(({ inflight, tree }) => inflight === m.inflight && tree === 'baseline');
    const micros = of(m, (report) => report.microsPerPair);
    const ratio = base === undefined ? '' : (micros / of(base, (report) => report.microsPerPair)).toFixed(2);
    const memory = (of(m, (report) => report.rssBytes) / MIB).toFixed(0);
    return [`${m.inflight}`, m.tree, micros.toFixed(2), ratio, memory];
  });
  return table(['in an entry', 'tree', 'CPU µs per acquire + release', 'vs baseline', 'MiB'], rows);
}
