import type { Clock, Random, ServiceError, Timer } from '@remora/base';

/**
 * Asks the master once for a revision, at least `floor`. Every revision that the master issued before the question is
 * at or below it; every revision that it issues after the answer is above it.
 */
export type DrawNewest = (
  floor: number,
  done: (error: ServiceError | undefined, newest: number | undefined) => void,
) => void;

const RETRY_MIN_MS = 10;
const RETRY_MAX_MS = 100;
/** How old the state may be that a serializable read over several ranges returns. */
const RECENT_MS = 1_000;

/** Called once, with either an error or a revision. */
type NewestDone = (error: ServiceError | undefined, revision: number | undefined) => void;

/** Asks the master for its newest revision, at which reads over several ranges are made. */
export class NewestRevision {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #drawNewest: DrawNewest;
  #last = { revision: 0, atMs: Number.NEGATIVE_INFINITY };

  constructor(deps: { readonly clock: Clock; readonly random: Random; readonly newest: DrawNewest }) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#drawNewest = deps.newest;
  }

  /** Returns the last revision drawn, if that was a moment ago and it is at least `floor`. */
  recent(floor: number): number | undefined {
    const { revision, atMs } = this.#last;
    return revision >= floor && this.#clock.monotonicMs() - atMs <= RECENT_MS ? revision : undefined;
  }

  /** Whether the master is known to have issued a revision. */
  wasGiven(revision: number): boolean {
    return revision <= this.#last.revision;
  }

  /** The same as `ask`, as a promise that rejects when the signal aborts. */
  draw(floor: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        giveUp();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const giveUp = this.ask(floor, (error, revision) => {
        signal.removeEventListener('abort', onAbort);
        if (revision === undefined) reject(error);
        else resolve(revision);
      });
    });
  }

  /**
   * Asks the master until it answers with a revision, or with an error that a retry cannot change. Returns a function
   * that gives up; the caller sets the deadline.
   */
  ask(floor: number, done: NewestDone): () => void {
    let over = false;
    let pause: Timer | undefined;
    const attempt = (ceilingMs: number): void => {
      const askedMs = this.#clock.monotonicMs();
      this.#drawNewest(floor, (error, revision) => {
        if (revision !== undefined) this.#last = { revision, atMs: askedMs };
        if (over) return;
        if (revision !== undefined || isFinal(error)) return done(error, revision);
        const pauseMs = ceilingMs / 2 + this.#random.int(Math.ceil(ceilingMs / 2));
        pause = this.#clock.setTimer(pauseMs, () => attempt(Math.min(RETRY_MAX_MS, 2 * ceilingMs)));
      });
    };
    attempt(RETRY_MIN_MS);
    return () => {
      over = true;
      pause?.cancel();
    };
  }
}

function isFinal(error: ServiceError | undefined): boolean {
  return error?.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED';
}
