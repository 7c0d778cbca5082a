import type { Clock, Timer } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';

/**
 * One process's view of the virtual clock.
 *
 * PC1. While it is paused (SIGSTOP) nothing of the process runs. Timers that became due meanwhile run when it
 *      continues.
 * PC2. The timers of a killed process never run, including those that it sets while it dies. Its successor begins
 *      without timers.
 * PC3. Monotonic and wall-clock times differ between processes: times of two processes must not be compared.
 */
export class ProcessClock implements Clock {
  readonly #clock: ManualClock;
  readonly #monotonicOffsetMs: number;
  readonly #wallOffsetMs: number;
  #life = 0;
  #alive = false;
  #paused = false;
  #waiting: (() => void)[] = [];

  constructor(clock: ManualClock, offsets: { readonly monotonicMs: number; readonly wallMs: number }) {
    this.#clock = clock;
    this.#monotonicOffsetMs = offsets.monotonicMs;
    this.#wallOffsetMs = offsets.wallMs;
  }

  get paused(): boolean {
    return this.#paused;
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.#wallOffsetMs;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs() + this.#monotonicOffsetMs;
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    let cancelled = false;
    const due = this.bind(() => {
      if (!cancelled) fn();
    });
    const timer = this.#clock.setTimer(delayMs, due);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  setImmediate(fn: () => void): void {
    this.#clock.setImmediate(this.bind(fn));
  }

  /** Wraps `fn` as an event of this life of the process. */
  bind(fn: () => void): () => void {
    const enter = this.door();
    return () => enter(fn);
  }

  /** The entry for outside events into this life of the process (PC1, PC2). */
  door(): (fn: () => void) => void {
    const life = this.#life;
    return (fn) => {
      if (!this.#alive || life !== this.#life) return;
      if (this.#paused) this.#waiting.push(fn);
      else fn();
    };
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const fn of waiting) this.#clock.setImmediate(this.bind(fn));
  }

  /** A life begins. */
  begin(): void {
    this.#life++;
    this.#alive = true;
  }

  kill(): void {
    this.#alive = false;
    this.#paused = false;
    this.#waiting = [];
  }
}
