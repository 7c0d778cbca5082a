import { assert } from '../assert.ts';
import type { Clock, Timer } from '../clock.ts';
import { TimerQueue } from './timer-queue.ts';

/**
 * A clock that moves only when told to, for tests and the simulator.
 *
 * C1. Timers fire in the order of their due times, and timers with equal due times in the order in which they were set.
 *     Each sees the time at which it was due.
 * C2. Immediates run before any timer that is due later in the same `advance`, and after each timer that fires.
 * C3. Callbacks run only inside `advance`, `fireNext` and `runImmediates`.
 */
export class ManualClock implements Clock {
  #nowMs: number;
  #wallOffsetMs: number;
  readonly #timers = new TimerQueue();
  #immediates: (() => void)[] = [];

  constructor(start: { readonly wallMs?: number; readonly monotonicMs?: number } = {}) {
    this.#nowMs = start.monotonicMs ?? 0;
    this.#wallOffsetMs = (start.wallMs ?? 1_700_000_000_000) - this.#nowMs;
  }

  wallMs(): number {
    return Math.floor(this.#nowMs + this.#wallOffsetMs);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    return this.#timers.add(this.#nowMs + Math.max(0, delayMs), fn);
  }

  setImmediate(fn: () => void): void {
    this.#immediates.push(fn);
  }

  /** Moves time forward, firing what is due on the way. */
  advance(ms: number): void {
    assert(ms >= 0, 'time does not go back');
    const target = this.#nowMs + ms;
    this.runImmediates();
    for (;;) {
      const due = this.nextTimerMs();
      if (due === undefined || due > target) break;
      this.fireNext();
    }
    this.#nowMs = Math.max(this.#nowMs, target);
  }

  /** Moves time to the next timer and fires it and the immediates it causes. False when there is no timer. */
  fireNext(): boolean {
    const timer = this.#timers.take();
    if (timer === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
    timer.fn();
    this.runImmediates();
    return true;
  }

  /** Runs immediates, and those that they set, until none is left. */
  runImmediates(): void {
    while (this.#immediates.length > 0) {
      const batch = this.#immediates;
      this.#immediates = [];
      for (const fn of batch) fn();
    }
  }

  /** When the next timer is due, on the monotonic clock. */
  nextTimerMs(): number | undefined {
    return this.#timers.dueMs;
  }

  /** Whether immediates are waiting. */
  get hasImmediates(): boolean {
    return this.#immediates.length > 0;
  }

  /** Timers that are set and neither fired nor cancelled: a test that ends should leave none. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Makes the wall clock jump, forward or back; timers and monotonic time do not notice. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }
}
