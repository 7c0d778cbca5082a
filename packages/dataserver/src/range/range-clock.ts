import type { Clock } from '@remora/base';

/**
 * Range time: milliseconds that a leader counts on its monotonic clock, carried on from leader to leader by what it
 * stamps on entries. It stands still while there is no leader, and a wall clock that is wrong or jumps does not
 * touch it (design §3 ▸). Request deadlines are judged by it, and nothing that protects exclusion.
 */
export class RangeClock {
  readonly #clock: Clock;
  #baseMs = 0;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Goes on from what the log says; never back. */
  rebase(rangeTimeMs: number): void {
    this.#baseMs = Math.max(rangeTimeMs, this.#sinceMs === 0 ? 0 : this.nowMs());
    this.#sinceMs = this.#clock.monotonicMs();
  }

  /** Forgets what it counted: another leader's stamps are the time from now on. */
  reset(rangeTimeMs: number): void {
    this.#baseMs = rangeTimeMs;
    this.#sinceMs = this.#clock.monotonicMs();
  }

  nowMs(): number {
    return Math.floor(this.#baseMs + (this.#clock.monotonicMs() - this.#sinceMs));
  }
}
