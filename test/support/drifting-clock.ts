import type { Clock, Timer } from '@remora/base';

/** Timers are late by this much, so that none fires early by its own clock, however products are rounded. */
const LATE_MS = 1e-6;

/** A clock whose speed is `rate` times that of another one. */
export class DriftingClock implements Clock {
  readonly #true: Clock;
  readonly #rate: number;

  constructor(trueClock: Clock, rate: number) {
    this.#true = trueClock;
    this.#rate = rate;
  }

  wallMs(): number {
    return Math.floor(this.#true.wallMs() * this.#rate);
  }

  monotonicMs(): number {
    return this.#true.monotonicMs() * this.#rate;
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    return this.#true.setTimer(delayMs / this.#rate + LATE_MS, fn);
  }

  setImmediate(fn: () => void): void {
    this.#true.setImmediate(fn);
  }
}
