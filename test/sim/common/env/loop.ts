/**
 * The event loop of the simulated world.
 *
 * V1. One step runs one call-back: the oldest immediate, else the timer that is due first (those due together in the
 *     order they were set). Virtual time moves only from step to step.
 * V2. Between two steps every promise that could settle has settled: each step is a real turn of its own. So what runs
 *     in one world is a function of its seed, and virtual time never overtakes a promise.
 */
import { assert, type Clock, type Timer } from '@remora/base';

/** Real turns of the event loop are made ready in batches: it is looked for input once per batch, not once per step. */
const STEPS_PER_BATCH = 64;
const WALL_START_MS = 1_700_000_000_000;

interface Pending {
  readonly dueMs: number;
  readonly sequence: number;
  fn: (() => void) | undefined;
}

export class SimLoop implements Clock {
  #nowMs = 0;
  #sequence = 0;
  #pending = 0;
  /** Steps made so far. */
  steps = 0;
  /** A binary heap by (due, sequence); a cancelled timer stays until it comes up. */
  readonly #heap: Pending[] = [];
  #immediates: (() => void)[] = [];
  #nextImmediate = 0;

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return WALL_START_MS + Math.floor(this.#nowMs);
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const timer: Pending = { dueMs: this.#nowMs + Math.max(0, delayMs), sequence: this.#sequence++, fn };
    push(this.#heap, timer);
    this.#pending++;
    return {
      cancel: () => {
        if (timer.fn !== undefined) this.#pending--;
        timer.fn = undefined;
      },
    };
  }

  setImmediate(fn: () => void): void {
    this.#immediates.push(fn);
  }

  /** Timers set and neither fired nor cancelled. */
  get pendingTimers(): number {
    return this.#pending;
  }

  /** Steps while `goOn` says so, it being asked before each step. Ends early when nothing is left to happen. */
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
    for (let timer = pop(this.#heap); timer !== undefined; timer = pop(this.#heap)) {
      const { fn } = timer;
      if (fn === undefined) continue;
      assert(timer.dueMs >= this.#nowMs, 'V1: time does not go back');
      this.#nowMs = timer.dueMs;
      timer.fn = undefined;
      this.#pending--;
      fn();
      return true;
    }
    return false;
  }
}

function before(a: Pending, b: Pending): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
}

function push(heap: Pending[], timer: Pending): void {
  let at = heap.length;
  heap.push(timer);
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || !before(timer, parent)) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = timer;
}

function pop(heap: Pending[]): Pending | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let at = 0;
  for (;;) {
    let childAt = 2 * at + 1;
    let child = heap[childAt];
    if (child === undefined) break;
    const right = heap[childAt + 1];
    if (right !== undefined && before(right, child)) {
      child = right;
      childAt++;
    }
    if (!before(child, last)) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
  return top;
}
