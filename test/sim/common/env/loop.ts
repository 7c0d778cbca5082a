/**
 * The event loop of the simulated world.
 *
 * V1. One step runs one call-back: the oldest immediate, else the timer that is due first (those due together in the
 *     order they were set). Virtual time moves only from step to step.
 * V2. Between two steps every promise that could settle has settled: each step is a real turn of its own. So the events
 *     of a world are a function of its seed, and virtual time never overtakes a promise.
 */
import { assert, type Clock, type Timer } from '@remora/base';
import { TimerQueue } from '@remora/base/testing';

/** Real turns of the event loop are prepared in batches: it checks for input once per batch, not once per step. */
const STEPS_PER_BATCH = 64;
const WALL_START_MS = 1_700_000_000_000;

export class SimLoop implements Clock {
  #nowMs = 0;
  /** Steps made so far. */
  steps = 0;
  readonly #timers = new TimerQueue();
  #immediates: (() => void)[] = [];
  #nextImmediate = 0;

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return WALL_START_MS + Math.floor(this.#nowMs);
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    return this.#timers.add(this.#nowMs + Math.max(0, delayMs), fn);
  }

  setImmediate(fn: () => void): void {
    this.#immediates.push(fn);
  }

  /** Timers set and neither fired nor cancelled. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Runs steps while `goOn` returns true; it is called before each step. Ends early if nothing is left to happen. */
  drive(goOn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = 0;
      let over = false;
      const batch = (): void => {
        left = STEPS_PER_BATCH;
        for (let i = 0; i < STEPS_PER_BATCH; i++) setImmediate(one);
      };
      const one = (): void => {
        left--;
        if (over) return;
        try {
          if (!goOn() || !this.#step()) {
            over = true;
            resolve();
          }
        } catch (error) {
          over = true;
          reject(error);
        }
        if (left === 0 && !over) batch();
      };
      batch();
    });
  }

  /** Lets `ms` of virtual time pass. */
  async run(ms: number): Promise<void> {
    let done = false;
    this.setTimer(ms, () => {
      done = true;
    });
    await this.drive(() => !done);
  }

  #step(): boolean {
    this.steps++;
    const immediate = this.#immediates[this.#nextImmediate];
    if (immediate !== undefined) {
      this.#nextImmediate++;
      if (this.#nextImmediate === this.#immediates.length) {
        this.#immediates = [];
        this.#nextImmediate = 0;
      }
      immediate();
      return true;
    }
    const timer = this.#timers.take();
    if (timer === undefined) return false;
    assert(timer.dueMs >= this.#nowMs, 'V1: time does not go back');
    this.#nowMs = timer.dueMs;
    timer.fn();
    return true;
  }
}
