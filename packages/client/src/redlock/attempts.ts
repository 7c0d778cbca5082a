/** The record of an operation's attempts: each is the vote of the one cluster. */
import type { RemoraClient } from '../client.ts';
import type { ExecutionStats } from './execution-stats.ts';
import { ExecutionError, voteOf } from './redlock-errors.ts';
import { attemptsMax, type Settings } from './settings.ts';

/** Without a limit of attempts only the last ones are kept. */
export const ATTEMPTS_KEPT_MAX = 1_000;

export class Attempts {
  readonly list: Promise<ExecutionStats>[] = [];
  readonly #client: RemoraClient;
  readonly #onError: (error: Error) => void;
  readonly #max: number;
  #made = 0;

  constructor(client: RemoraClient, settings: Settings, onError: (error: Error) => void) {
    this.#client = client;
    this.#max = attemptsMax(settings);
    this.#onError = onError;
  }

  /** How many further attempts are allowed. */
  get left(): number {
    return this.#max - this.#made;
  }

  succeeded(): void {
    this.#add(new Set([this.#client]), new Map());
  }

  /** Also tells the listeners of `error`. */
  failed(error: unknown): void {
    const vote = voteOf(error);
    this.#add(new Set(), new Map([[this.#client, vote]]));
    this.#onError(vote);
  }

  /** The error of the whole operation. */
  error(what: string, cause: unknown): ExecutionError {
    const times = this.#made === 1 ? 'one attempt' : `${this.#made} attempts`;
    const why = cause instanceof Error ? `: ${cause.message}` : '';
    return new ExecutionError(`${what} failed after ${times}${why}`, this.list, { cause });
  }

  #add(votesFor: Set<RemoraClient>, votesAgainst: Map<RemoraClient, Error>): void {
    this.#made++;
    if (this.list.length === ATTEMPTS_KEPT_MAX && this.#max === Number.POSITIVE_INFINITY) this.list.splice(0, 1);
    this.list.push(Promise.resolve({ membershipSize: 1, quorumSize: 1, votesFor, votesAgainst }));
  }
}
