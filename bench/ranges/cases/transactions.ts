/**
 * What a transaction over two ranges costs beside one that has its keys in one of them: throughput, latency and CPU
 * time of the nodes. Both put two keys; workers have keys of their own, so none conflicts with another.
 *
 * Settings: inflight=16  ranges=8
 */

import { median } from '../../../test/support/quantile.ts';
import { cpuMicros } from '../../proc.ts';
import { type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { type Bed, setting, withBed } from '../bed.ts';
import { runWorkers, type WorkerRun } from '../workers.ts';

const VALUE = Buffer.alloc(64, 'x');
const KEYS_PER_WORKER = 100;
const WARM_UP_SECONDS = 2;
/** How many ranges the keys of a transaction are in. */
const SPREADS = [1, 2] as const;
type Spread = (typeof SPREADS)[number];

interface Measured extends WorkerRun {
  readonly spread: Spread;
  readonly inflight: number;
  /** All nodes together, per transaction. */
  readonly cpuMicrosPerOp: number;
}

export const SETTINGS = ['inflight', 'ranges'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const ranges = setting(context, 'ranges', 8);
  const measured = await withBed({ flags: { 'pre-split-count': String(ranges) } }, async (bed) => {
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'inflight', [16])) {
      for (let i = 0; i < context.runs; i++) {
        for (const spread of SPREADS) all.push(await measure(context, bed, { spread, inflight, ranges }));
      }
    }
    return all;
  });
  return { data: measured, text: render(measured), bars: [] };
}

async function measure(
  context: CaseContext,
  { client, cluster }: Bed,
  load: { readonly spread: Spread; readonly inflight: number; readonly ranges: number },
): Promise<Measured> {
  const { spread, inflight, ranges } = load;
  const put = (worker: number, n: number, range: number) => {
    return { put: keyOf({ range, ranges }, worker, n), value: VALUE };
  };
  const transaction = (worker: number, n: number) =>
    client.kv.txn({ success: [put(worker, 2 * n, worker), put(worker, 2 * n + 1, worker + spread - 1)] });
  const options = { workers: inflight, seconds: context.seconds, warmUpSeconds: WARM_UP_SECONDS };
  let before = 0;
  const timer = setTimeout(() => {
    before = cpuOf(cluster);
  }, 1_000 * WARM_UP_SECONDS);
  const done = await runWorkers(transaction, options);
  clearTimeout(timer);
  const cpuMicrosPerOp = (cpuOf(cluster) - before) / Math.max(1, done.operations);
  context.progress(`${spread} ranges, ${inflight} in flight: ${Math.round(done.perSecond)} per second`);
  return { ...done, spread, inflight, cpuMicrosPerOp };
}

/** A key of the nth range; the first two bytes decide which that is. */
function keyOf(
  { range, ranges }: { readonly range: number; readonly ranges: number },
  worker: number,
  n: number,
): Buffer {
  const key = Buffer.alloc(10);
  key.writeUInt16BE(Math.ceil(((range % ranges) * 0x1_0000) / ranges));
  key.writeUInt32BE(worker, 2);
  key.writeUInt32BE(n % KEYS_PER_WORKER, 6);
  return key;
}

function cpuOf({ nodes }: Bed['cluster']): number {
  return nodes.reduce((sum, { pid }) => sum + cpuMicros(pid), 0);
}

function render(measured: readonly Measured[]): string {
  const inflights = [...new Set(measured.map(({ inflight }) => inflight))];
  const rows = inflights.flatMap((inflight) =>
    SPREADS.map((spread) => {
      const some = measured.filter((one) => one.spread === spread && one.inflight === inflight);
      const of = (value: (one: Measured) => number) => median(some.map(value));
      return [
        String(spread),
        String(inflight),
        of((one) => one.perSecond).toFixed(0),
        of((one) => one.p50Ms).toFixed(2),
        of((one) => one.p99Ms).toFixed(2),
        of((one) => one.cpuMicrosPerOp).toFixed(0),
      ];
    }),
  );
  return table(['ranges', 'in flight', 'transactions/s', 'p50 ms', 'p99 ms', 'CPU µs each, of all nodes'], rows);
}
