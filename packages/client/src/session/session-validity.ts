import type { Clock } from '@remora/base';
import { TTL_NEVER_MS } from '@remora/lock';
import { aliveMs, Limit, type Pace, paceOf, type SessionTerms } from './session-pace.ts';

/** When a heartbeat was sent, by the two clocks of the client. */
export interface SentAt {
  readonly sentMs: number;
  readonly sentWallMs: number;
}

const UNANSWERED = 'no heartbeat was acknowledged in time';
/** Tolerance: the clocks are read one after the other, and one of them counts whole milliseconds. */
const CLOCKS_APART_MS = 1_000;

/**
 * How long a client counts on its session: computed from the acknowledged heartbeats, the agreed terms, and a limit.
 * The rules are those of the session (`session.ts`, S1, S2, S4, S5).
 */
export class SessionValidity {
  readonly #clock: Clock;
  #pace: Pace;
  #ackedMs: number;
  #ackedWallMs: number;
  /** The validity of the last acknowledged heartbeat (S4, S5). */
  #validityMs: number;
  #limit: Limit | undefined;

  /** `began`: the request for the session counts as its first heartbeat. */
  constructor(clock: Clock, terms: SessionTerms, began: SentAt) {
    this.#clock = clock;
    this.#pace = paceOf(terms);
    this.#validityMs = aliveMs(this.#pace, terms.ttlMs);
    this.#ackedMs = began.sentMs;
    this.#ackedWallMs = began.sentWallMs;
  }

  get pace(): Pace {
    return this.#pace;
  }

  /** On the monotonic clock (S1). */
  get deadlineMs(): number {
    const deadlineMs = this.#ackedMs + this.#validityMs;
    return this.#limit === undefined ? deadlineMs : Math.min(deadlineMs, this.#limit.endMs);
  }

  /** Infinite when the session needs no renewal. */
  get remainingMs(): number {
    if (this.#pace.ttlMs >= TTL_NEVER_MS && this.#limit === undefined) return Number.POSITIVE_INFINITY;
    const [leftMs, wallLeftMs] = [
      this.deadlineMs - this.#clock.monotonicMs(),
      this.#wallDeadlineMs - this.#clock.wallMs(),
    ];
    return Math.max(0, Math.min(leftMs, wallLeftMs));
  }

  /** On the wall clock (S2). */
  get #wallDeadlineMs(): number {
    const deadlineMs = this.#ackedWallMs + this.#validityMs;
    return this.#limit === undefined ? deadlineMs : Math.min(deadlineMs, this.#limit.wallEndMs);
  }

  /** How long ago the last acknowledged heartbeat was sent, in ms. */
  get spentMs(): number {
    return this.#clock.monotonicMs() - this.#ackedMs;
  }

  /** When the next heartbeat is due, on the monotonic clock. */
  get dueMs(): number {
    return this.#ackedMs + this.#pace.intervalMs;
  }

  /** Why the session is over at this moment of the two clocks; undefined if it is not (S1, S2). */
  whyOver(nowMs: number, wallMs: number): string | undefined {
    if (nowMs - this.#ackedMs >= this.#validityMs) return UNANSWERED;
    const wallSpentMs = wallMs - this.#ackedWallMs;
    if (wallSpentMs >= this.#validityMs) {
      const aheadMs = wallSpentMs - (nowMs - this.#ackedMs);
      return aheadMs > CLOCKS_APART_MS ? 'the machine was suspended, or its clock was set' : UNANSWERED;
    }
    return this.#limit?.isOver(nowMs, wallMs) ? 'its maxHold is over' : undefined;
  }

  /**
   * A heartbeat was acknowledged (S1, S4, S5). Returns false if it does not count, as a later one was acknowledged
   * before.
   */
  count({ sentMs, sentWallMs }: SentAt, ttlMs: number): boolean {
    if (sentMs < this.#ackedMs) return false;
    this.#ackedMs = sentMs;
    this.#ackedWallMs = sentWallMs;
    this.#validityMs = aliveMs(this.#pace, ttlMs);
    return true;
  }

  /** Whether other terms would shorten the validity of the last heartbeat. */
  isCutBy(pace: Pace): boolean {
    return aliveMs(pace, pace.ttlMs) < this.#validityMs;
  }

  /** S5. */
  keepTo(pace: Pace): void {
    this.#pace = pace;
    this.#validityMs = Math.min(this.#validityMs, aliveMs(pace, pace.ttlMs));
  }

  /** Limits the rest of the session to this time, whatever is renewed. */
  limitTo(spanMs: number): void {
    this.#limit = new Limit(this.#clock, spanMs);
  }
}
