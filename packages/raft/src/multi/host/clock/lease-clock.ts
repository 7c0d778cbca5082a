/**
 * A node's clocks as leases need them: read together, and checked for time that passed unseen (design §4 ▸; traps 6).
 *
 * K1. A suspended machine stops the monotonic clock but not the wall clock. If the wall clock has run ahead since the
 *     last reading by more than `WALL_AHEAD_MS_MAX`, leases are void. A smaller difference is counted as elapsed time
 *     (lease.ts E6).
 * K2. A process that stood still for longer than the ticks that it makes up for does not trust its clocks either:
 *     leases are void. It detects this at the first tick or at the first use of a lease, whichever comes first.
 */
import type { Clock } from '@remora/base';
import type { Moment } from '../../../core/types.ts';

const WALL_AHEAD_MS_MAX = 10;

export interface LeaseClockOptions {
  readonly clock: Clock;
  /** The longest time between ticks that is not a stall. */
  readonly stallMs: number;
  /** Leases count only from heartbeats sent after this moment. */
  readonly voided: (nowMs: number) => void;
}

export class LeaseClock {
  readonly #options: LeaseClockOptions;
  #last: Moment;
  #tickedMs: number;

  constructor(options: LeaseClockOptions) {
    this.#options = options;
    this.#last = { monotonicMs: options.clock.monotonicMs(), wallMs: options.clock.wallMs() };
    this.#tickedMs = this.#last.monotonicMs;
  }

  /** Reads both clocks; voids leases first if time passed unseen. */
  now(): Moment {
    const { clock, stallMs, voided } = this.#options;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const last = this.#last;
    this.#last = now;
    const wallAheadMs = now.wallMs - last.wallMs - (now.monotonicMs - last.monotonicMs);
    const stalled = now.monotonicMs - this.#tickedMs > stallMs; // K2
    if (stalled || wallAheadMs > WALL_AHEAD_MS_MAX) voided(now.monotonicMs); // K1
    return now;
  }

  /** A tick has come: the loop runs. Call `now` first. */
  ticked(now: Moment): void {
    this.#tickedMs = now.monotonicMs;
  }
}
