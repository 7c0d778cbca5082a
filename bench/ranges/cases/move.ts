/**
 * How long a replica takes from one node to another, and what that does to the requests of others: one range is filled
 * and moved to a fourth node, again and again to the one that does not have it, while a client writes keys of another
 * range.
 *
 * Settings: mib=64 (in the range)  writers=4  every=4 (ms from the beginning of a writer's put to that of its next)
 */
import { pause } from '../../../test/e2e/eventually.ts';
import { median, quantile } from '../../../test/support/quantile.ts';
import type { CaseContext, CaseResult } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, changeRange, fill, setting, withBed } from '../bed.ts';
import { Writers } from '../writers.ts';

const MOVED_RANGE = 2;
/** Of the keys at which the second range begins. */
const BORDER = 'n';
const REST_MS = 5_000;

interface Measured {
  readonly seconds: number;
  readonly p99BeforeMs: number;
  readonly p99DuringMs: number;
}

export const SETTINGS = ['mib', 'writers', 'every'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const mib = setting(context, 'mib', 64);
  // Nothing is split or merged by itself meanwhile.
  const flags = { 'pre-split': BORDER, 'auto-split': 'false' };
  const measured = await withBed({ flags }, async (bed) => {
    const fourth = await bed.cluster.addJoining({ roles: 'data' });
    fourth.start();
    await fourth.untilReady();
    await fill(bed.client, mib, (n) => `a/${String((n * 7_919) % 1_000_003).padStart(7, '0')}/${n}`);
    const keys = Array.from({ length: setting(context, 'writers', 4) }, (_, i) => `${BORDER}/writer/${i}`);
    const load = new Writers(bed.client, keys, setting(context, 'every', 4));
    try {
      return await moveAll(context, bed, load);
    } finally {
      await load.stop();
    }
  });
  return { data: measured, text: render(measured), bars: [] };
}

async function moveAll(context: CaseContext, bed: Bed, load: Writers): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  for (let i = 0; i < context.runs; i++) {
    await pause(REST_MS);
    const fromMs = performance.now();
    await move(bed);
    const toMs = performance.now();
    const before = { fromMs: fromMs - REST_MS, toMs: fromMs };
    const p99 = (time: { fromMs: number; toMs: number }) => quantile(load.latencies(time), 0.99);
    const one = { seconds: (toMs - fromMs) / 1_000, p99BeforeMs: p99(before), p99DuringMs: p99({ fromMs, toMs }) };
    context.progress(JSON.stringify(one));
    measured.push(one);
  }
  return measured;
}

/** From a node that follows, so that no leader has to hand over. */
async function move({ admin }: Bed): Promise<void> {
  const { replicas, leaderNode } = await admin.range(MOVED_RANGE);
  const { nodes } = await admin.nodes();
  const has = new Set(replicas.map(({ nodeId }) => nodeId));
  const from = replicas.find(({ nodeId }) => nodeId !== leaderNode)?.nodeId;
  const to = nodes.find(({ id }) => !has.has(id))?.id;
  if (from === undefined || to === undefined) throw new Error('there is a node without a replica');
  await changeRange(admin, MOVED_RANGE, { $case: 'move', value: { fromNode: BigInt(from), toNode: BigInt(to) } });
}

function render(measured: readonly Measured[]): string {
  const of = (value: (one: Measured) => number) => median(measured.map(value));
  const before = of((one) => one.p99BeforeMs);
  const during = of((one) => one.p99DuringMs);
  const cells = [of((one) => one.seconds), before, during, during / Math.max(0.001, before)];
  const head = ['moves', 's each, median', 'p99 ms of others before', 'during', 'ratio'];
  return table(head, [[String(measured.length), ...cells.map((value) => value.toFixed(2))]]);
}
