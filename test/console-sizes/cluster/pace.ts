import type { SimCluster } from './sim-cluster.ts';

/** Idle time between two steps of virtual time. */
const REST_MS = 4;
/** A late cluster does not catch up further: its time then passes slower than that of people. */
const LATE_MS_MAX = 50;

/** Lets the cluster's time pass with the time of people: `rate` times as fast, as far as the processor allows. */
export class Pace {
  readonly #cluster: SimCluster;
  rate = 1;

  constructor(cluster: SimCluster) {
    this.#cluster = cluster;
  }

  async run(): Promise<never> {
    const { loop } = this.#cluster;
    let seenMs = performance.now();
    let dueMs = loop.monotonicMs();
    for (;;) {
      const nowMs = performance.now();
      dueMs = Math.min(dueMs + (nowMs - seenMs) * this.rate, loop.monotonicMs() + LATE_MS_MAX * this.rate);
      seenMs = nowMs;
      await this.#cluster.until(() => loop.monotonicMs() >= dueMs);
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  }
}
