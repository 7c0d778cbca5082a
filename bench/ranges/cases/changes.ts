/**
 * How long a split, a merge and a transfer of a leader block writes of the keys that they are about.
 *
 * A cluster of one range is filled. Then, again and again: the range is split in the middle, its halves are merged, and
 * its leader hands over to another node, while one client writes keys of both halves, each by a writer of its own. What
 * counts is the longest time between two successes of one writer, from the order until a while after it was carried
 * out, less what is ordinary: the longest in the time before.
 *
 * Settings: mib=16 (in the cluster before)  writers=4 (half of them in each half)  every=4 (ms from the beginning of a
 * writer's put to that of its next, or until it has ended)  times=20 (of each kind)  changes=split,merge,transfer
 */
import { kvRoutingKey } from '@remora/protocol';
import type { AdminClient } from 'remora/admin';
import { pause } from '../../../test/e2e/eventually.ts';
import { median } from '../../../test/support/quantile.ts';
import { type CaseBar, type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, changeRange, fill, setting, transferLeader, withBed } from '../bed.ts';
import { Writers } from '../writers.ts';

const CHANGES = ['split', 'merge', 'transfer'] as const;
type Change = (typeof CHANGES)[number];

/** What the project asks for, in the median. */
const BLOCKED_MS_MAX: Readonly<Record<Change, number>> = { split: 10, merge: 50, transfer: 50 };
/** Between changes; and what is watched behind one, as those who asked in vain pause before they ask again. */
const BETWEEN_MS = 1_500;
const AFTER_MS = 500;
/** The halves begin with these letters. */
const HALVES = ['a', 'n'] as const;
const MIDDLE = kvRoutingKey(Buffer.from('n'));

interface Measured {
  readonly change: Change;
  readonly ordinaryMs: number;
  /**
   * The longest gap of any writer of the keys that the change takes from one leader to another; and of the other keys.
   */
  readonly gapMs: number;
  readonly othersMs: number;
}

export const SETTINGS = ['mib', 'writers', 'every', 'times', 'changes'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const [mib, writers, times] = [
    setting(context, 'mib', 16),
    setting(context, 'writers', 4),
    setting(context, 'times', 20),
  ];
  const wanted = wordsOf(context, 'changes', CHANGES);
  const measured = await withBed({}, async (bed) => {
    await fill(bed.client, mib, (n) => `${HALVES[n % 2]}/fill/${n}`);
    const keys = Array.from({ length: writers }, (_, i) => `${HALVES[i % 2]}/writer/${i}`);
    const load = new Writers(bed.client, keys, setting(context, 'every', 4));
    try {
      return await measureAll(context, { bed, load, writers }, wanted, times);
    } finally {
      await load.stop();
    }
  });
  return { data: measured, text: render(measured), bars: bars(measured) };
}

interface Loaded {
  readonly bed: Bed;
  readonly load: Writers;
  readonly writers: number;
}

/** A merge follows each split, measured or not. */
async function measureAll(
  context: CaseContext,
  loaded: Loaded,
  wanted: readonly Change[],
  times: number,
): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  const divided = wanted.includes('split') || wanted.includes('merge');
  for (let i = 0; i < times; i++) {
    for (const change of CHANGES) {
      if (change === 'transfer' ? !wanted.includes(change) : !divided) continue;
      const one = await measure(loaded, change);
      context.progress(`${i + 1}: ${JSON.stringify(one)}`);
      if (wanted.includes(change)) measured.push(one);
    }
  }
  return measured;
}

async function measure({ bed, load, writers }: Loaded, change: Change): Promise<Measured> {
  await pause(BETWEEN_MS);
  const fromMs = performance.now();
  await carryOut(bed, change);
  await pause(AFTER_MS);
  const toMs = performance.now();
  const before = { fromMs: fromMs - BETWEEN_MS, toMs: fromMs };
  const half = (first: number) => Array.from({ length: Math.ceil((writers - first) / 2) }, (_, i) => first + 2 * i);
  const [stay, leave] = [half(0), half(1)];
  const during = { fromMs, toMs };
  const gapMs = change === 'transfer' ? load.longestGap(during) : load.longestGap(during, leave);
  return {
    change,
    ordinaryMs: load.longestGap(before),
    gapMs,
    othersMs: change === 'transfer' ? 0 : load.longestGap(during, stay),
  };
}

async function carryOut({ admin, cluster }: Bed, change: Change): Promise<void> {
  const [first, second] = await rangesOf(admin);
  switch (change) {
    case 'split':
      return changeRange(admin, first, { $case: 'split', value: { at: MIDDLE } });
    case 'merge':
      return changeRange(admin, first, { $case: 'merge', value: { source: BigInt(second) } });
    case 'transfer':
      return transferLeader({ admin, cluster }, first);
  }
}

async function rangesOf(admin: AdminClient): Promise<readonly [first: number, second: number]> {
  const { items: ranges } = await admin.ranges({ pageSize: 2 }).page();
  return [ranges[0]?.id ?? 0, ranges[1]?.id ?? 0];
}

function render(measured: readonly Measured[]): string {
  const rows = CHANGES.flatMap((change) => {
    const some = measured.filter((one) => one.change === change);
    if (some.length === 0) return [];
    const of = (value: (one: Measured) => number) => some.map(value);
    const beyond = of(beyondMs);
    const cells = [
      median(beyond),
      Math.max(...beyond),
      median(of((one) => one.gapMs)),
      median(of((one) => one.ordinaryMs)),
    ];
    const others = change === 'transfer' ? '' : median(of((one) => one.othersMs)).toFixed(1);
    return [[change, String(some.length), ...cells.map((ms) => ms.toFixed(1)), others]];
  });
  const head = ['change', 'times', 'blocked ms, median', 'most', 'longest gap ms, median', 'ordinary', 'of other keys'];
  return table(head, rows);
}

function beyondMs({ gapMs, ordinaryMs }: Measured): number {
  return Math.max(0, gapMs - ordinaryMs);
}

function bars(measured: readonly Measured[]): readonly CaseBar[] {
  return CHANGES.flatMap((change) => {
    const some = measured.filter((one) => one.change === change);
    if (some.length === 0) return [];
    const value = median(some.map(beyondMs));
    const most = BLOCKED_MS_MAX[change];
    const text = `a ${change} blocks writes of the keys that it moves for ${most} ms at most, in the median`;
    return [{ text, value, unit: ' ms', met: value <= most }];
  });
}
