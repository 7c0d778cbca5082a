/**
 * Puts per second through the SDK with one range and with several, 16 in flight for each of them, beside one range with
 * 256 in flight.
 *
 * Each number of ranges has a cluster of its own, which begins with them (`--pre-split-count`); keys are spread over
 * them evenly. With more than one range the master numbers all writes.
 *
 * Settings: ranges=1,8,64  per-range=16  whole=256 (in flight, with one range)
 */
import { connect } from 'remora';
import { withCluster } from '../../../test/e2e/harness.ts';
import { median } from '../../../test/support/quantile.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { runWorkers, type WorkerRun } from '../workers.ts';

const VALUE = Buffer.alloc(64, 'x');
const KEYS_PER_WORKER = 100;
const WARM_UP_SECONDS = 2;
/** Of one range with 256 in flight. */
const SHARE_MIN = 0.6;
const BAR_RANGES = 64;

interface Load {
  readonly ranges: number;
  readonly inflight: number;
}

interface Measured extends Load {
  readonly runs: readonly WorkerRun[];
}

export const SETTINGS = ['ranges', 'per-range', 'whole'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const [perRange = 16] = numbersOf(context, 'per-range', [16]);
  const measured: Measured[] = [];
  for (const inflight of numbersOf(context, 'whole', [256]))
    measured.push(await measure(context, { ranges: 1, inflight }));
  for (const ranges of numbersOf(context, 'ranges', [1, 8, 64])) {
    measured.push(await measure(context, { ranges, inflight: perRange * ranges }));
  }
  return { data: measured, text: render(measured), bars: bars(measured) };
}

async function measure(context: CaseContext, load: Load): Promise<Measured> {
  const { ranges, inflight } = load;
  return withCluster({ flags: { 'pre-split-count': String(ranges) } }, async (cluster) => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '30s' });
    const put = (worker: number, n: number) => client.kv.put(keyOf(load, worker, n), VALUE);
    const runs: WorkerRun[] = [];
    for (let i = 0; i < context.runs; i++) {
      const options = { workers: inflight, seconds: context.seconds, warmUpSeconds: WARM_UP_SECONDS };
      const done = await runWorkers(put, options);
      context.progress(`${ranges} ranges, ${inflight} in flight: ${Math.round(done.perSecond)} per second`);
      runs.push(done);
    }
    return { ...load, runs };
  });
}

/** A worker stays in one range; the first two bytes of a key decide which. */
function keyOf({ ranges }: Load, worker: number, n: number): Buffer {
  const key = Buffer.alloc(10);
  key.writeUInt16BE(Math.ceil(((worker % ranges) * 0x1_0000) / ranges));
  key.writeUInt32BE(worker, 2);
  key.writeUInt32BE(n % KEYS_PER_WORKER, 6);
  return key;
}

function perSecondOf({ runs }: Measured): number {
  return median(runs.map(({ perSecond }) => perSecond));
}

function render(measured: readonly Measured[]): string {
  const rows = measured.map((each) => [
    String(each.ranges),
    String(each.inflight),
    perSecondOf(each).toFixed(0),
    median(each.runs.map(({ p50Ms }) => p50Ms)).toFixed(2),
    median(each.runs.map(({ p99Ms }) => p99Ms)).toFixed(2),
  ]);
  return table(['ranges', 'in flight', 'puts/s', 'p50 ms', 'p99 ms'], rows);
}

function bars(measured: readonly Measured[]): readonly CaseBar[] {
  const whole = measured.find(({ ranges, inflight }) => ranges === 1 && inflight === 256);
  const many = measured.find(({ ranges }) => ranges === BAR_RANGES);
  if (whole === undefined || many === undefined) return [];
  const value = perSecondOf(many) / perSecondOf(whole);
  const text = `puts with ${BAR_RANGES} ranges, at least ${SHARE_MIN} of one range with 256 in flight`;
  return [{ text, value, unit: '', met: value >= SHARE_MIN }];
}
