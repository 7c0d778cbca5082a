/**
 * Detects whether a node has other work than copying snapshots, by the counters of its host. This adds no counting to
 * requests, and does nothing while no snapshot is in progress.
 *
 * W1. Busy: at least `WORK_MIN` reads and writes of the log within one window. Fewer are the housekeeping of unused
 *     groups, however many groups there are.
 * W2. If the last look is older than two windows, the state is unknown, and counts as busy.
 */
import type { Clock } from '@remora/base';
import type { HostStats } from '../stats.ts';

const WINDOW_MS = 100;
const WORK_MIN = 5;

export class WorkMeter {
  readonly #clock: Clock;
  readonly #stats: Readonly<HostStats>;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #workAtStart = 0;
  #busy = true;

  constructor(clock: Clock, stats: Readonly<HostStats>) {
    this.#clock = clock;
    this.#stats = stats;
  }

  get busy(): boolean {
    const now = this.#clock.monotonicMs();
    const work = this.#work();
    const elapsedMs = now - this.#windowStartMs;
    const worked = work - this.#workAtStart >= WORK_MIN; // W1
    if (worked || elapsedMs > 2 * WINDOW_MS)
      this.#busy = true; // W2
    else if (elapsedMs >= WINDOW_MS) this.#busy = false;
    if (elapsedMs >= WINDOW_MS) {
      this.#windowStartMs = now;
      this.#workAtStart = work;
    }
    return this.#busy;
  }

  /** Followers write the entries of other leaders, so their writes count as well. */
  #work(): number {
    const { appends, readsStarted, readsLeased } = this.#stats;
    return appends + readsStarted + readsLeased;
  }
}
