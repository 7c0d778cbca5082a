/**
 * The single timer of a host, converted to Raft ticks.
 *
 * T1. Ticks are processed after input that was pending at the same time: a node that was stopped reads its messages
 *     before it concludes that a leader has failed.
 * T2. After a stall, at most `catchUpTicksMax` ticks are made up for, fewer than an election timeout has: time that the
 *     node did not observe does not count as silence of others.
 * T3. Ticks never run ahead of time by more than half a tick, and the ticks after any moment cover at most
 *     `catchUpTicksMax` ticks of the time before it. Leases rely on this (core/lease.ts E3).
 */
import type { Clock, Timer } from '@remora/base';

export interface TickerOptions {
  readonly clock: Clock;
  readonly tickMs: number;
  readonly catchUpTicksMax: number;
  readonly tick: (count: number) => void;
  readonly stalled: (elapsedMs: number) => void;
}

export class Ticker {
  readonly #options: TickerOptions;
  #timer: Timer | undefined;
  #lastMs = 0;

  constructor(options: TickerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#lastMs = this.#options.clock.monotonicMs();
    this.#arm(this.#options.tickMs);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#options.clock.setTimer(delayMs, () => this.#fired());
  }

  #fired(): void {
    this.#options.clock.setImmediate(() => this.#timer !== undefined && this.#run()); // T1
  }

  #run(): void {
    const { clock, tickMs, catchUpTicksMax, tick } = this.#options;
    const now = clock.monotonicMs(); // T3: read when the ticks are made, not when the timer fired
    // A timer may fire a fraction early; half a tick of tolerance keeps that from costing a whole one.
    let due = Math.floor((now - this.#lastMs) / tickMs + 0.5);
    if (due > catchUpTicksMax) {
      this.#options.stalled(now - this.#lastMs);
      due = catchUpTicksMax; // T2
      this.#lastMs = now;
    } else {
      this.#lastMs += due * tickMs;
    }
    this.#arm(Math.max(1, this.#lastMs + tickMs - now));
    if (due > 0) tick(due);
  }
}
