/**
 * The single timer of a host, converted to Raft ticks. It wakes only for ticks at which something is due: an idle node
 * would spend most of its time on waking up.
 *
 * T1. Ticks are processed after input that was pending at the same time: a node that was stopped reads its messages
 *     before it concludes that a leader has failed.
 * T2. After a stall, at most `catchUpTicksMax` ticks beyond the planned ones are made up for, fewer than an election
 *     timeout has: time that the node did not observe does not count as silence of others.
 * T3. Ticks never run ahead of time by more than half a tick. After `sync`, they are behind by less than one tick,
 *     unless the timer is late; and the ticks that follow cover at most `catchUpTicksMax` ticks of the time before it.
 *     Leases rely on this (core/lease.ts E3).
 * T4. `sync` never reaches a tick at which something is due. Those are reached in turn, after input (T1).
 */
import type { Clock, Timer } from '@remora/base';

export interface TickerOptions {
  readonly clock: Clock;
  readonly tickMs: number;
  readonly catchUpTicksMax: number;
  readonly tick: (count: number) => void;
  readonly stalled: (elapsedMs: number) => void;
  /** After how many ticks, at least 1, something is due. */
  readonly nextDue: () => number;
}

export class Ticker {
  readonly #options: TickerOptions;
  #timer: Timer | undefined;
  /** The time of the last tick. */
  #lastMs = 0;
  /** The timer wakes at this tick after the last one. */
  #planned = 1;

  constructor(options: TickerOptions) {
    this.#options = options;
  }

  start(): void {
    const now = this.#options.clock.monotonicMs();
    this.#lastMs = now;
    this.#plan(1, now);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Makes the ticks that have passed before an input, so that the input is counted from its own time (T3, T4). */
  sync(): void {
    if (this.#planned === 1 || this.#timer === undefined) return;
    const { clock, tickMs, tick } = this.#options;
    const passed = Math.min(Math.floor((clock.monotonicMs() - this.#lastMs) / tickMs), this.#planned - 1);
    if (passed < 1) return;
    this.#lastMs += passed * tickMs;
    this.#planned -= passed;
    tick(passed);
  }

  /** Something is due after `ticks` from the last one: wakes by then. */
  wakeWithin(ticks: number): void {
    if (ticks >= this.#planned || this.#timer === undefined) return;
    this.#plan(ticks, this.#options.clock.monotonicMs());
  }

  #plan(ticks: number, nowMs: number): void {
    const { clock, tickMs } = this.#options;
    this.#planned = ticks;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(Math.max(1, this.#lastMs + ticks * tickMs - nowMs), () => this.#fired());
  }

  #fired(): void {
    this.#options.clock.setImmediate(() => this.#timer !== undefined && this.#run()); // T1
  }

  #run(): void {
    const { clock, tickMs, catchUpTicksMax, tick, nextDue } = this.#options;
    const now = clock.monotonicMs(); // T3: read when the ticks are made, not when the timer fired
    // A timer may fire a fraction early; half a tick of tolerance keeps that from costing a whole one.
    let due = Math.floor((now - this.#lastMs) / tickMs + 0.5);
    const most = this.#planned - 1 + catchUpTicksMax;
    if (due > most) {
      this.#options.stalled(now - this.#lastMs);
      due = most; // T2
      this.#lastMs = now;
    } else {
      this.#lastMs += due * tickMs;
    }
    this.#planned = 1;
    if (due > 0) tick(due);
    if (this.#timer !== undefined) this.#plan(nextDue(), clock.monotonicMs());
  }
}
