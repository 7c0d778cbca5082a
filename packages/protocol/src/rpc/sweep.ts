import type { Clock } from '@remora/base';

/** The delay with which a time-out may be noticed. */
const SWEEP_INTERVAL_MS = 50;

/**
 * One coarse timer for any number of deadlines: while armed it calls `sweep` with the monotonic time at an interval,
 * until `sweep` returns false (no deadlines are left). A timer per call would cost more than the call.
 */
export class Sweep {
  readonly #clock: Clock;
  readonly #sweep: (nowMs: number) => boolean;
  readonly #intervalMs: number;
  #armed = false;

  constructor(clock: Clock, sweep: (nowMs: number) => boolean, intervalMs = SWEEP_INTERVAL_MS) {
    this.#clock = clock;
    this.#sweep = sweep;
    this.#intervalMs = intervalMs;
  }

  get armed(): boolean {
    return this.#armed;
  }

  arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#clock.setTimer(this.#intervalMs, () => {
      this.#armed = false;
      if (this.#sweep(this.#clock.monotonicMs())) this.arm();
    });
  }
}
