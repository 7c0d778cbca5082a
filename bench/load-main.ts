/**
 * The process that makes the load: as many workers as operations are to be in flight, each of which begins the next
 * operation when the last one has ended. It tells its parent when the warm-up is over, and the result at the end.
 */

import { quantile } from '../test/support/quantile.ts';
import { openContended } from './contended-drivers.ts';
import { type Driver, type OpenDriver, openDriver, openHandoff } from './drivers.ts';
import type { LoadArguments, LoadResult } from './load-spec.ts';

const WARM_UP_MS = 1_500;
/** After an error, so that a dead server is not asked in a tight loop. */
const ERROR_PAUSE_MS = 2;
const HANDOFF_SETTLE_MS = 15;

async function throughput(spec: LoadArguments): Promise<LoadResult> {
  const driver = await (await opener(spec))(spec);
  const run = new Run(driver);
  for (let worker = 0; worker < spec.inflight; worker++) void run.work((spec.firstWorker ?? 0) + worker);
  await driver.settled?.();
  await pause(WARM_UP_MS);
  run.begin();
  process.send?.({ type: 'measuring' });
  await pause(spec.seconds * 1_000);
  run.end();
  // Told first of all, so that the parent reads the processes' CPU time at the right moment.
  process.send?.({ type: 'measured' });
  await driver.close().catch(() => {});
  return run.result();
}

async function opener({ workload, module }: LoadArguments): Promise<OpenDriver> {
  if (module !== undefined) return ((await import(module)) as { readonly open: OpenDriver }).open;
  return workload === 'contended' || workload === 'queue' ? openContended : openDriver;
}

class Run {
  readonly #driver: Driver;
  #latencies: number[] = [];
  #errors = 0;
  #firstError: string | undefined;
  #begunMs = 0;
  #endedMs = 0;
  #lastMs = 0;
  #longestGapMs = 0;
  #over = false;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Never rejects. */
  async work(worker: number): Promise<void> {
    for (let n = 0; !this.#over; n++) {
      const begunMs = performance.now();
      try {
        await this.#driver.operation(worker, n);
      } catch (error) {
        if (this.#over) return;
        this.#fail(error instanceof Error ? error.message : String(error));
        await pause(ERROR_PAUSE_MS);
        continue;
      }
      if (this.#over) return;
      const nowMs = performance.now();
      this.#latencies.push(nowMs - begunMs);
      this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastMs);
      this.#lastMs = nowMs;
    }
  }

  #fail(message: string): void {
    this.#errors++;
    this.#firstError ??= message;
  }

  begin(): void {
    this.#latencies = [];
    this.#errors = 0;
    this.#begunMs = performance.now();
    this.#lastMs = this.#begunMs;
    this.#longestGapMs = 0;
  }

  end(): void {
    this.#over = true;
    this.#endedMs = performance.now();
  }

  result(): LoadResult {
    const ops = this.#latencies.length;
    // It would count as a slow run otherwise, and halve a median.
    if (ops === 0) this.#fail('no operation ended');
    return {
      ops,
      opsPerSecond: (ops * 1_000) / (this.#endedMs - this.#begunMs),
      p50Ms: quantile(this.#latencies, 0.5),
      p99Ms: quantile(this.#latencies, 0.99),
      errors: this.#errors,
      ...(this.#firstError === undefined ? {} : { firstError: this.#firstError }),
      longestGapMs: Math.max(this.#longestGapMs, this.#endedMs - this.#lastMs),
    };
  }
}

/** Two clients pass a lock to and fro; what is measured is the way from the call of release to the other's grant. */
async function handoff(spec: LoadArguments): Promise<LoadResult> {
  const driver = await openHandoff(spec);
  const latencies: number[] = [];
  let release = await driver.acquire(0);
  process.send?.({ type: 'measuring' });
  const endMs = performance.now() + spec.seconds * 1_000;
  for (let turn = 1; performance.now() < endMs; turn++) {
    const granted = driver.acquire(turn % 2 === 0 ? 0 : 1).then((next) => ({ next, atMs: performance.now() }));
    // The other is in the queue by then, and the machine idle.
    await pause(HANDOFF_SETTLE_MS);
    const begunMs = performance.now();
    const released = release();
    const { next, atMs } = await granted;
    latencies.push(atMs - begunMs);
    await released;
    release = next;
  }
  process.send?.({ type: 'measured' });
  await release();
  await driver.close().catch(() => {});
  const ops = latencies.length;
  const [p50Ms, p99Ms] = [quantile(latencies, 0.5), quantile(latencies, 0.99)];
  return { ops, opsPerSecond: ops / spec.seconds, p50Ms, p99Ms, errors: 0 };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const load = JSON.parse(process.argv[2] ?? '{}') as LoadArguments;
const result = load.workload === 'handoff' ? await handoff(load) : await throughput(load);
process.send?.({ type: 'result', result });
process.disconnect?.();
// A lease that an etcd lock load leaves behind ends by itself; nothing is worth waiting for.
process.exit();
