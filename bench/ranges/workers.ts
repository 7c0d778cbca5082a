import { quantile } from '../../test/support/quantile.ts';

export interface WorkerRun {
  readonly operations: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** So many workers, each of which begins its next operation when the last one has ended; the warm-up does not count. */
export async function runWorkers(
  operation: (worker: number, n: number) => Promise<unknown>,
  options: { readonly workers: number; readonly seconds: number; readonly warmUpSeconds: number },
): Promise<WorkerRun> {
  const beginMs = performance.now() + 1_000 * options.warmUpSeconds;
  const endMs = beginMs + 1_000 * options.seconds;
  const latencies: number[] = [];
  const worker = async (index: number): Promise<void> => {
    for (let n = 0; performance.now() < endMs; n++) {
      const begunMs = performance.now();
      await operation(index, n);
      const nowMs = performance.now();
      if (begunMs >= beginMs && nowMs <= endMs) latencies.push(nowMs - begunMs);
    }
  };
  await Promise.all(Array.from({ length: options.workers }, (_, i) => worker(i)));
  const operations = latencies.length;
  const perSecond = operations / options.seconds;
  return { operations, perSecond, p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
}
