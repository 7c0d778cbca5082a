import type { Clock, Random, ServiceError, Timer } from '@remora/base';

/**
 * Asks the master once for a revision, at least `floor`: what anybody was given before the question is at or below it,
 * and what anybody is given after the answer is above it.
 */
export type DrawNewest = (
  floor: number,
  done: (error: ServiceError | undefined, newest: number | undefined) => void,
) => void;

const RETRY_MIN_MS = 10;
const RETRY_MAX_MS = 100;
/** How old the state may be that a serializable read over several ranges shows. */
const RECENT_MS = 1_000;

/** Told once: a revision, or why the master gives none. */
type NewestDone = (error: ServiceError | undefined, revision: number | undefined) => void;

/** The newest revisions, as the master knows them: what reads over several ranges, and their headers, are as of. */
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

  /** The last one drawn, if that was a moment ago and it is at least `floor`. */
  recent(floor: number): number | undefined {
    const { revision, atMs } = this.#last;
    return revision >= floor && this.#clock.monotonicMs() - atMs <= RECENT_MS ? revision : undefined;
  }

  /** Whether the master is known to have given a revision out. */
  wasGiven(revision: number): boolean {
    return revision <= this.#last.revision;
  }

  /** The same as `ask`, until the signal says that it is too late. */
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
   * Asks the master until it answers with a revision, or with an error that a later attempt would get as well. Returns what
   * gives up; the caller sets the deadline.
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
