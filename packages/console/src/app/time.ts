/**
 * The time of the cluster, as far as answers told it. It ticks once a second while the tab is visible and the node
 * answers.
 */
import { connection } from '../api/connection.ts';
import { Store } from '../logic/store.ts';

const TICK_MS = 1_000;
/** Clocks that differ by less count as equal: an answer takes a while. */
const SKEW_MIN_MS = 1_500;

let offsetMs = 0;

export const now = new Store(Date.now());

/** Takes over the wall time that an answer carried. */
export function serverTime(nowMs: number): void {
  if (!Number.isFinite(nowMs)) return;
  const difference = nowMs - Date.now();
  offsetMs = Math.abs(difference) < SKEW_MIN_MS ? 0 : difference;
}

export function clusterNow(): number {
  return Date.now() + offsetMs;
}

export function startTicking(): void {
  setInterval(() => {
    // What is shown while the connection is lost is the last answer: its durations stand still with it.
    if (!document.hidden && connection.get().isUp) now.set(clusterNow());
  }, TICK_MS);
}
