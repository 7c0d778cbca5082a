/**
 * Opening a log of 1 GiB, of which nothing is covered by a checkpoint, and applying all of it: time, and the most
 * memory taken above that of an empty process.
 *
 * Settings: bytes=1073741824  payload=256  groups=1,64
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../../../test/support/child.ts';
import { median } from '../../../test/support/quantile.ts';
import { compiledBench } from '../../compiled-bench.ts';
import { table } from '../../report.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../case.ts';

export interface RecoveryArguments {
  readonly mode: 'write' | 'recover';
  readonly dir: string;
  /** Bytes of data in the whole log, and in each entry. */
  readonly bytes: number;
  readonly payloadBytes: number;
  readonly groups: number;
}

export interface RecoveryReport {
  readonly openMs: number;
  /** Most memory above that of the process at its start: until the log was open, and until all was applied. */
  readonly openPeakBytes: number;
  readonly applyPeakBytes: number;
  readonly applyMs: number;
  readonly entries: number;
  /** Of them, those that had to be read from the log once more. */
  readonly entriesReadBack: number;
}

interface Measured {
  readonly payloadBytes: number;
  readonly groups: number;
  readonly runs: RecoveryReport[];
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const OPEN_MS_BAR = 10_000;
const PEAK_BYTES_BAR = 300 * MIB;

export const SETTINGS = ['bytes', 'payload', 'groups'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const [bytes = GIB] = numbersOf(context, 'bytes', [GIB]);
  const measured: Measured[] = [];
  for (const payloadBytes of numbersOf(context, 'payload', [256])) {
    for (const groups of numbersOf(context, 'groups', [1, 64])) {
      measured.push(await measure(context, { bytes, payloadBytes, groups }));
    }
  }
  return { data: measured, text: render(measured), bars: bars(measured, bytes) };
}

async function measure(
  context: CaseContext,
  load: { readonly bytes: number; readonly payloadBytes: number; readonly groups: number },
): Promise<Measured> {
  const { payloadBytes, groups } = load;
  const dir = join(context.dir, `${payloadBytes}-${groups}`);
  mkdirSync(dir);
  context.progress(`${groups} groups, entries of ${payloadBytes} B: writing ${Math.round(load.bytes / MIB)} MiB`);
  await perform(context, { mode: 'write', dir, ...load });
  const runs: RecoveryReport[] = [];
  for (let i = 0; i < context.runs; i++) {
    const report = await perform(context, { mode: 'recover', dir, ...load });
    context.progress(`opened in ${Math.round(report.openMs)} ms, applied in ${Math.round(report.applyMs)} ms`);
    runs.push(report);
  }
  rmSync(dir, { recursive: true });
  return { payloadBytes, groups, runs };
}

async function perform(context: CaseContext, args: RecoveryArguments): Promise<RecoveryReport> {
  const { profileDir, root } = context;
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profileDir, args.mode)}`];
  const child = new Child({
    command: [process.execPath, ...profile, compiledBench(root, 'raft/recovery-main.js'), JSON.stringify(args)],
    cwd: args.dir,
    logPath: join(context.dir, `${args.mode}.log`),
  });
  const report = await child.message(args.mode === 'write' ? 'written' : 'recovered');
  await child.stop();
  const number = (name: keyof RecoveryReport): number => Number(report[name] ?? 0);
  return {
    openMs: number('openMs'),
    openPeakBytes: number('openPeakBytes'),
    applyMs: number('applyMs'),
    applyPeakBytes: number('applyPeakBytes'),
    entries: number('entries'),
    entriesReadBack: number('entriesReadBack'),
  };
}

function of(measured: Measured, pick: (report: RecoveryReport) => number): number {
  return median(measured.runs.map(pick));
}

function render(measured: readonly Measured[]): string {
  return table(
    ['entries', 'groups', 'open s', 'MiB above', 'apply s', 'MiB above', 'read back'],
    measured.map((m) => [
      `${of(m, (r) => r.entries)} of ${m.payloadBytes} B`,
      `${m.groups}`,
      (of(m, (r) => r.openMs) / 1000).toFixed(2),
      (of(m, (r) => r.openPeakBytes) / MIB).toFixed(0),
      (of(m, (r) => r.applyMs) / 1000).toFixed(2),
      (of(m, (r) => r.applyPeakBytes) / MIB).toFixed(0),
      `${of(m, (r) => r.entriesReadBack)}`,
    ]),
  );
}

function bars(measured: readonly Measured[], bytes: number): readonly CaseBar[] {
  if (bytes < GIB) return [];
  const openMs = Math.max(...measured.map((m) => of(m, (r) => r.openMs)));
  const peak = Math.max(...measured.map((m) => of(m, (r) => r.applyPeakBytes)));
  return [
    { text: 'a log of 1 GiB is open in under 10 s', value: openMs / 1000, unit: ' s', met: openMs < OPEN_MS_BAR },
    {
      text: 'and takes less than 300 MiB beside the process, everything applied',
      value: peak / MIB,
      unit: ' MiB',
      met: peak < PEAK_BYTES_BAR,
    },
  ];
}
