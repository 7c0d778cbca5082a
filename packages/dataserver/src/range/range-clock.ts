import type { Clock } from '@remora/base';

/** So far times of ranges that meet on a node may be apart. */
const BEHIND_MAX_MS = 1_000;

/**
 * Range time: milliseconds that a leader counts on its monotonic clock, carried on from leader to leader by what it
 * stamps on entries. It stands still while there is no leader, and a wall clock that is wrong or jumps does not
 * touch it (design §3 ▸). Request deadlines are judged by it, and nothing that protects exclusion.
 *
 * Ranges have times of their own, which fall apart as leaders change. Clients fix deadlines by whichever range answered
 * last, so who is behind goes on from where others are (`catchUp`). To go ahead is safe: a deadline that passes early
 * is refused for certain, and what is remembered until then is judged by the same time.
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

  /** Goes on from the time of another range, if that is so much ahead. */
  catchUp(otherMs: number): void {
    if (otherMs - this.nowMs() > BEHIND_MAX_MS) this.rebase(otherMs);
  }

  nowMs(): number {
    return Math.floor(this.#baseMs + (this.#clock.monotonicMs() - this.#sinceMs));
  }
}
