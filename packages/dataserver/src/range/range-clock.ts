import type { Clock } from '@remora/base';

/** The largest difference between the times of ranges that meet on a node. */
const BEHIND_MAX_MS = 1_000;

/**
 * Range time: milliseconds that a leader counts on its monotonic clock. The stamps on entries carry it from leader to
 * leader. It stands still while there is no leader, and does not depend on wall clocks (design §3 ▸). It decides
 * request deadlines, and nothing that protects exclusion.
 *
 * Each range has its own time, and the times drift apart when leaders change. Clients compute deadlines from the range
 * that answered last, so a range that lags moves forward to the others (`catchUp`). Moving forward is safe: a deadline
 * that passes early leads to a certain refusal, and the same time decides how long outcomes are remembered.
 */
export class RangeClock {
  readonly #clock: Clock;
  #baseMs = 0;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Continues from the time in the log; never goes back. */
  rebase(rangeTimeMs: number): void {
    this.#baseMs = Math.max(rangeTimeMs, this.#sinceMs === 0 ? 0 : this.nowMs());
    this.#sinceMs = this.#clock.monotonicMs();
  }

  /** Forgets its own count: from now on another leader's stamps are the time. */
  reset(rangeTimeMs: number): void {
    this.#baseMs = rangeTimeMs;
    this.#sinceMs = this.#clock.monotonicMs();
  }

  /** Continues from the time of another range, if that is far enough ahead. */
  catchUp(otherMs: number): void {
    if (otherMs - this.nowMs() > BEHIND_MAX_MS) this.rebase(otherMs);
  }

  nowMs(): number {
    return Math.floor(this.#baseMs + (this.#clock.monotonicMs() - this.#sinceMs));
  }
}
