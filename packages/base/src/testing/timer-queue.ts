import type { Timer } from '../clock.ts';

export interface QueuedTimer {
  readonly dueMs: number;
  readonly fn: () => void;
}

interface Pending {
  readonly dueMs: number;
  readonly sequence: number;
  /** Absent: fired or cancelled. */
  fn: (() => void) | undefined;
}

/**
 * The timers of a virtual clock by due time; timers with equal due times in the order in which they were set. A binary
 * heap, in which cancelled timers stay until they come up.
 */
export class TimerQueue {
  readonly #heap: Pending[] = [];
  #sequence = 0;
  #size = 0;

  /** Timers that are set and have neither been taken nor cancelled. */
  get size(): number {
    return this.#size;
  }

  /** When the next timer is due. */
  get dueMs(): number | undefined {
    this.#dropCancelled();
    return this.#heap[0]?.dueMs;
  }

  add(dueMs: number, fn: () => void): Timer {
    const timer: Pending = { dueMs, sequence: this.#sequence++, fn };
    push(this.#heap, timer);
    this.#size++;
    return {
      cancel: () => {
        if (timer.fn !== undefined) this.#size--;
        timer.fn = undefined;
      },
    };
  }

  /** Removes and returns the next timer; the caller runs it. */
  take(): QueuedTimer | undefined {
    this.#dropCancelled();
    const timer = pop(this.#heap);
    if (timer?.fn === undefined) return undefined;
    const { dueMs, fn } = timer;
    timer.fn = undefined;
    this.#size--;
    return { dueMs, fn };
  }

  #dropCancelled(): void {
    while (this.#heap[0] !== undefined && this.#heap[0].fn === undefined) pop(this.#heap);
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
