/**
 * The clock that a test cluster shares with its clients.
 *
 * TC1. Timers fire in the order of their due times; those with equal times in the order in which they were set. While
 *      time is skipped, each sees the time at which it was due, and what it causes happens before the next one fires.
 * TC2. `setImmediate` is the process's own: work of one turn is done soon, whether or not time passes.
 * TC3. What has been captured here from the process is used, so fake timers of a test library do not stop a cluster.
 * TC4. No timer keeps the process alive.
 * TC5. Skips happen one after another.
 */
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';
import type { Clock, Timer } from '@remora/base';
import { TimerQueue } from '@remora/base/testing';

// TC3
const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: soon } = timers;
const uptimeMs = performance.now.bind(performance);
const dateMs = Date.now.bind(Date);

/** The wall clock of a cluster whose time stands still, when it begins. */
const MANUAL_WALL_MS = Date.UTC(2026, 0, 1);
/** Turns of the event loop; a cluster that is never at rest does not keep time from going on. */
const TURNS_MAX = 1_000;
/** The longest that `skipUntil` goes on. */
const UNTIL_MS_MAX = 600_000;
/** The pause while there is no timer, and something outside of this clock is awaited. */
const PAUSE_MS = 1;
/** Node fires a timer with a longer delay at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export class SharedClock implements Clock {
  readonly #queue = new TimerQueue();
  readonly #wallStartMs: number;
  #runs: boolean;
  /** When the process's clock was added to `#passedMs` last. */
  #sinceMs = uptimeMs();
  #passedMs = 0;
  /** The process's timer for the next of the queue, and when that is due. */
  #handle: NodeJS.Timeout | undefined;
  #handleDueMs = Number.POSITIVE_INFINITY;
  #skipping = false;
  #skips: Promise<unknown> = Promise.resolve();
  /** Immediates that were set and have not run. */
  #immediates = 0;

  constructor({ runs }: { readonly runs: boolean }) {
    this.#runs = runs;
    this.#wallStartMs = runs ? dateMs() : MANUAL_WALL_MS;
  }

  // -------------------------------------------------------------------------------------------- the port

  wallMs(): number {
    return Math.floor(this.#wallStartMs + this.monotonicMs());
  }

  monotonicMs(): number {
    return this.#passedMs + (this.#runs ? uptimeMs() - this.#sinceMs : 0);
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const timer = this.#queue.add(this.monotonicMs() + Math.max(0, delayMs), fn);
    this.#arm();
    return timer;
  }

  setImmediate(fn: () => void): void {
    this.#immediates++;
    soon(() => {
      this.#immediates--;
      fn();
    });
  }

  // -------------------------------------------------------------------------------------------- for the cluster

  /** Timers that are set and neither fired nor cancelled. */
  get pendingTimers(): number {
    return this.#queue.size;
  }

  /** Skips this time (TC1). */
  skip(ms: number): Promise<void> {
    return this.#inTurn(async () => {
      const untilMs = this.monotonicMs() + ms;
      for (;;) {
        await this.#calm();
        const dueMs = this.#queue.dueMs;
        if (dueMs === undefined || dueMs > untilMs) break;
        this.#fireNext(dueMs);
      }
      this.#moveTo(untilMs);
    });
  }

  /** Skips the waiting times of this work, until it is done. Rejects when it is not done after 10 minutes. */
  async skipUntil<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
    };
    work.then(settle, settle);
    await this.#inTurn(async () => {
      const endMs = this.monotonicMs() + UNTIL_MS_MAX;
      for (;;) {
        await this.#calm();
        if (isSettled) return;
        const dueMs = this.#queue.dueMs;
        if (dueMs === undefined) await pause();
        else if (dueMs > endMs) throw new Error('the test cluster did not finish within 10 minutes of its own time');
        else this.#fireNext(dueMs);
      }
    });
    return work;
  }

  /** Lets time pass by itself until this work is done, also if it usually stands still. */
  async runUntil<T>(work: Promise<T>): Promise<T> {
    const ran = this.#runs;
    this.#setRunning(true);
    try {
      return await work;
    } finally {
      this.#setRunning(ran);
    }
  }

  /** Drops all timers: those that nobody waits for any more. */
  clear(): void {
    while (this.#queue.take() !== undefined);
    this.#disarm();
  }

  // -------------------------------------------------------------------------------------------- helpers

  /** TC5. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#skips.then(async () => {
      this.#skipping = true;
      this.#disarm();
      try {
        await work();
      } finally {
        this.#skipping = false;
        this.#arm();
      }
    });
    this.#skips = turn.catch(() => {});
    return turn;
  }

  /** Waits until the cluster has nothing to do but wait for a timer. */
  async #calm(): Promise<void> {
    for (let turns = 0; turns < TURNS_MAX; turns++) {
      await turnOfLoop();
      if (this.#immediates === 0) return;
    }
  }

  #fireNext(dueMs: number): void {
    this.#moveTo(dueMs);
    this.#queue.take()?.fn();
  }

  #moveTo(atMs: number): void {
    this.#passedMs += Math.max(0, atMs - this.monotonicMs());
  }

  #setRunning(runs: boolean): void {
    this.#passedMs = this.monotonicMs();
    this.#sinceMs = uptimeMs();
    this.#runs = runs;
    if (runs) this.#arm();
    else this.#disarm();
  }

  #arm(): void {
    const dueMs = this.#queue.dueMs;
    if (!this.#runs || this.#skipping || dueMs === undefined || dueMs >= this.#handleDueMs) return;
    this.#disarm();
    this.#handleDueMs = dueMs;
    const delayMs = Math.ceil(Math.max(0, dueMs - this.monotonicMs()));
    this.#handle = startTimer(() => this.#fireDue(), Math.min(delayMs, DELAY_MS_MAX));
    this.#handle.unref(); // TC4
  }

  #disarm(): void {
    stopTimer(this.#handle);
    this.#handle = undefined;
    this.#handleDueMs = Number.POSITIVE_INFINITY;
  }

  #fireDue(): void {
    this.#disarm();
    try {
      const untilMs = this.monotonicMs();
      while ((this.#queue.dueMs ?? Number.POSITIVE_INFINITY) <= untilMs) this.#queue.take()?.fn();
    } finally {
      this.#arm();
    }
  }
}

function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => soon(resolve));
}

function pause(): Promise<void> {
  return new Promise((resolve) => startTimer(resolve, PAUSE_MS));
}
