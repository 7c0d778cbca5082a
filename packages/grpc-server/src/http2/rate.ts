import type { Timers } from '../timers.ts';

const SECOND_MS = 1_000;

/** Counts events against a maximum a second. It reads the clock once for `max` events, so twice as many may pass. */
export class Rate {
  readonly #max: number;
  readonly #timers: Timers;
  #count = 0;
  #sinceMs: number;

  constructor(max: number, timers: Timers) {
    this.#max = max;
    this.#timers = timers;
    this.#sinceMs = timers.monotonicMs();
  }

  /** Counts one more. Returns true if these are too many. */
  isExceeded(): boolean {
    if (++this.#count <= this.#max) return false;
    const nowMs = this.#timers.monotonicMs();
    if (nowMs - this.#sinceMs < SECOND_MS) return true;
    this.#sinceMs = nowMs;
    this.#count = 1;
    return false;
  }
}
