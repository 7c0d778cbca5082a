import { type Clock, type Random, ServiceError, sleep } from '@remora/base';

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

/** Revisions at which several ranges are read, as the master knows them. */
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

  /** Asks until the master answers, or the signal says that it is too late. */
  async draw(floor: number, signal: AbortSignal): Promise<number> {
    for (let ceilingMs = RETRY_MIN_MS; ; ceilingMs = Math.min(RETRY_MAX_MS, 2 * ceilingMs)) {
      const askedMs = this.#clock.monotonicMs();
      const newest = await this.#ask(floor, signal);
      if (typeof newest === 'number') {
        this.#last = { revision: newest, atMs: askedMs };
        return newest;
      }
      if (newest.retry === 'no' && newest.code !== 'DEADLINE_EXCEEDED') throw newest;
      await sleep(this.#clock, ceilingMs / 2 + this.#random.int(Math.ceil(ceilingMs / 2)), signal);
    }
  }

  /** Rejects as soon as it is too late, although the master may be long in answering. */
  #ask(floor: number, signal: AbortSignal): Promise<number | ServiceError> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#drawNewest(floor, (error, revision) => {
        signal.removeEventListener('abort', onAbort);
        resolve(revision ?? error ?? new ServiceError('INTERNAL', 'the master did not say anything'));
      });
    });
  }
}
