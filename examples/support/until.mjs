import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/** Asks again and again until the answer is true. */
export async function until(what, probe, timeoutMs = 60_000) {
  const endMs = performance.now() + timeoutMs;
  while ((await probe()) !== true) {
    if (performance.now() > endMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await sleep(POLL_MS);
  }
}
