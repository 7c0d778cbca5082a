import { assert } from '../assert.ts';
import type { Clock, Timer } from '../clock.ts';

/**
 * A clock that stands still until it is told to move, for tests and the simulator.
 *
 * C1. Timers fire in the order of their due times, those due together in the order they were set, and each sees the
 *     time at which it was due.
 * C2. Immediates run before any timer that is due later in the same `advance`, and after each timer that fires.
 * C3. Nothing runs except inside `advance`, `fireNext` and `runImmediates`.
 */
export class ManualClock implements Clock {
  #nowMs: number;
  #wallOffsetMs: number;
  #sequence = 0;
  /** A binary heap by (due, sequence). Cancelled timers stay until they come up. */
  readonly #heap: PendingTimer[] = [];
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
    const timer: PendingTimer = { dueMs: this.#nowMs + Math.max(0, delayMs), sequence: this.#sequence++, fn };
    push(this.#heap, timer);
    return {
      cancel: () => {
        timer.fn = undefined;
      },
    };
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
    if (this.nextTimerMs() === undefined) return false;
    const timer = pop(this.#heap);
    if (timer === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
    const fn = timer.fn;
    timer.fn = undefined;
    fn?.();
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
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return undefined;
      if (first.fn !== undefined) return first.dueMs;
      pop(this.#heap);
    }
  }

  /** Whether immediates are waiting. */
  get hasImmediates(): boolean {
    return this.#immediates.length > 0;
  }

  /** Timers that are set and neither fired nor cancelled: a test that ends should leave none. */
  get pendingTimers(): number {
    return this.#heap.reduce((count, timer) => count + (timer.fn === undefined ? 0 : 1), 0);
  }

  /** Makes the wall clock jump, forward or back; timers and monotonic time do not notice. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }
}

interface PendingTimer {
  readonly dueMs: number;
  readonly sequence: number;
  fn: (() => void) | undefined;
}

function before(a: PendingTimer, b: PendingTimer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
}

function push(heap: PendingTimer[], timer: PendingTimer): void {
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

function pop(heap: PendingTimer[]): PendingTimer | undefined {
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
