/** Above this duration the loop should not be blocked: a few times the CPU that the thread pool would cost. */
const IN_PLACE_MS_MAX = 0.5;
/**
 * The maximum that one sync contributes: a single stall of the device or of the loop says nothing about the next sync.
 */
const COUNTED_MS_MAX = 4 * IN_PLACE_MS_MAX;
/** A device that takes this long would soon delay heartbeats: one such sync is enough. */
const INTOLERABLE_MS = 20;
/** The weight of the newest sync in the average: three or more of the last twenty must be slow. */
const WEIGHT = 0.05;
/** After this many syncs in the pool, one in place shows whether the device is fast again. */
const POOL_SYNCS = 256;

/**
 * Decides where a file is synced: on the loop while that usually takes little longer than a thread's hand-over, in the
 * thread pool when it would block the loop. The decision is based on recent syncs in place: in the pool, a busy loop
 * would distort the measurement.
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
