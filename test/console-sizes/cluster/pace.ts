import type { SimCluster } from './sim-cluster.ts';

/** Idle time between two steps of virtual time. */
const REST_MS = 4;
/** A late cluster does not catch up further: its time then passes slower than that of people. */
const LATE_MS_MAX = 50;

/** Lets the cluster's time pass with the time of people, as far as the processor allows; never resolves. */
export async function keepPace(cluster: SimCluster): Promise<never> {
  const { loop } = cluster;
  let seenMs = performance.now();
  let dueMs = loop.monotonicMs();
  for (;;) {
    const nowMs = performance.now();
    dueMs = Math.min(dueMs + nowMs - seenMs, loop.monotonicMs() + LATE_MS_MAX);
    seenMs = nowMs;
    await cluster.until(() => loop.monotonicMs() >= dueMs);
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
  }
}
