import type { PendingTimer, Timers } from '../../src/timers.ts';

/** Time that a test moves; immediates are those of the event loop. */
export class ManualTimers implements Timers {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly fn: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, fn: () => void): PendingTimer {
    const timer = { atMs: this.#nowMs + delayMs, fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  setImmediate(fn: () => void): void {
    setImmediate(fn);
  }

  /** Lets time go by, and fires what is due, in order. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.fn();
    }
    this.#nowMs = untilMs;
  }
}
