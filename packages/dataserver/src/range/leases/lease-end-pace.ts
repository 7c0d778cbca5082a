import { ServiceError } from '@remora/base';

/** The end of a lease, or of some of what it has, that is to be proposed. */
export interface PacedEnd {
  /** Keys and locks that it takes, as far as is known before it is proposed. */
  readonly rows: () => number;
  /** Proposes it; `over` is called once when it is decided, or waits for something else. */
  readonly go: (over: () => void) => void;
  readonly refuse: (error: ServiceError) => void;
}

/** Keys and locks that are being taken, but for the last one that was let go on. */
const ROWS_MAX = 2_000;
/** More are refused. */
const WAITING_MAX = 20_000;

/**
 * Lets a leader end many leases one after the other that end at a time, as when a network fails: each takes up to a thousand keys and
 * locks in its entry (LC1, LC2 of lease-commands.ts), and what is proposed in one turn, or while others are replicated, is applied in
 * one go, for which everybody waits on every replica.
 *
 * EP1. They go on in the order in which they came, as soon as what is proposed and not decided takes less than ROWS_MAX. So one goes
 *      always, and what waits is told, in the end, whatever becomes of those before it.
 */
export class LeaseEndPace {
  #waiting: PacedEnd[] = [];
  /** Of `#waiting`: those before have gone. */
  #gone = 0;
  #rows = 0;
  #going = false;

  /** Those that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#gone;
  }

  add(end: PacedEnd): void {
    if (this.waiting >= WAITING_MAX) return end.refuse(tooMany());
    this.#waiting.push(end);
    this.#go();
  }

  /** What is over while others go makes room for more of them: nothing calls itself. */
  #go(): void {
    if (this.#going) return;
    this.#going = true;
    while (this.#rows < ROWS_MAX) {
      const next = this.#waiting[this.#gone];
      if (next === undefined) break;
      this.#gone++;
      this.#begin(next);
    }
    this.#going = false;
    if (this.#gone * 2 < this.#waiting.length) return;
    this.#waiting = this.#waiting.slice(this.#gone);
    this.#gone = 0;
  }

  #begin(end: PacedEnd): void {
    const rows = Math.max(1, end.rows());
    this.#rows += rows;
    end.go(() => {
      this.#rows -= rows;
      this.#go();
    });
  }
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many leases end at a time; try again later');
}
