/** Above this the loop is better not blocked: a few times the CPU that the thread pool would cost. */
const IN_PLACE_MS_MAX = 0.5;
/**
 * What one sync counts for at most: a hiccup of the device, or a loop that lost its core, says nothing about the next
 * one.
 */
const COUNTED_MS_MAX = 4 * IN_PLACE_MS_MAX;
/** A device that takes so long would soon hold up heartbeats: one such sync is enough. */
const INTOLERABLE_MS = 20;
/** Of the newest in the average: three or more of the last twenty have to be slow. */
const WEIGHT = 0.05;
/** So many go to the pool, then one in place tells whether the device is fast again. */
const POOL_SYNCS = 256;

/**
 * Where a file is synced: on the loop while that typically takes little longer than the hand-over to a thread and back,
 * in the thread pool when it would hold up the loop. Decided by what syncs in place took lately: in the pool a busy
 * loop would spoil the measurement.
 */
export class SyncPlace {
  #averageMs = 0;
  #poolSyncsLeft = 0;

  get inPlace(): boolean {
    return this.#poolSyncsLeft <= 0;
  }

  /** A sync was made in place. */
  measured(tookMs: number): void {
    this.#averageMs += WEIGHT * (Math.min(tookMs, COUNTED_MS_MAX) - this.#averageMs);
    if (this.#averageMs <= IN_PLACE_MS_MAX && tookMs < INTOLERABLE_MS) return;
    this.#averageMs = IN_PLACE_MS_MAX;
    this.#poolSyncsLeft = POOL_SYNCS;
  }

  /** A sync goes to the pool. */
  pooled(): void {
    this.#poolSyncsLeft--;
  }
}
