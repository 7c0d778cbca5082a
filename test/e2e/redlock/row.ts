/** The form of the table's rows, and what they have in common. */
import { eventually } from '../eventually.ts';
import type { Library, RedlockLike, ResultLike, Side, StatsLike } from './side.ts';

export interface Row {
  /** A claim, which the outcome shows. */
  readonly name: string;
  /** Returns the outcome: plain data. */
  readonly run: (on: Bench) => Promise<unknown>;
  readonly outcome: unknown;
  /** Remora differs on purpose: its outcome, and what the documentation says of both. */
  readonly differs?: { readonly outcome: unknown; readonly redlock: string; readonly remora: string };
}

/** One library on its servers, with names that no other row uses. */
export class Bench {
  readonly side: Side;
  readonly #row: string;

  constructor(side: Side, row: string) {
    this.side = side;
    this.#row = row;
  }

  get library(): Library {
    return this.side.library;
  }

  /** A resource of this row. */
  resource(name = 'a'): string {
    return `${this.#row}/${name}`;
  }

  /** How many clients have to agree. The others may answer after a call has ended. */
  get quorum(): number {
    return Math.floor(this.side.clients.length / 2) + 1;
  }

  redlock(settings?: object): RedlockLike {
    return new this.library.default(this.side.clients, settings);
  }

  /** Without a further attempt. */
  once(): RedlockLike {
    return this.redlock({ retryCount: 0 });
  }

  isLocked(name = 'a'): Promise<boolean> {
    return this.side.isLocked(this.resource(name));
  }

  takeAway(name = 'a'): Promise<void> {
    return this.side.takeAway(this.resource(name));
  }

  async untilFree(name = 'a'): Promise<boolean> {
    return eventually('it is free', async () => !(await this.isLocked(name)));
  }

  /** How a call ended. */
  async outcomeOf(call: () => unknown): Promise<unknown> {
    try {
      await call();
      return 'fulfilled';
    } catch (error) {
      return this.errorOf(error);
    }
  }

  async errorOf(error: unknown): Promise<unknown> {
    if (!(error instanceof Error)) return `no error: ${String(error)}`;
    if (!(error instanceof this.library.ExecutionError)) return 'an Error';
    return { name: error.name, attempts: await this.attemptsOf(error) };
  }

  /** For each attempt its vote: `for`, or why not. */
  async attemptsOf({ attempts }: ResultLike): Promise<readonly string[]> {
    const stats = await Promise.all(attempts);
    return stats.map((each) => this.voteOf(each));
  }

  voteOf({ votesFor, votesAgainst, quorumSize }: StatsLike): string {
    if (votesFor.size >= quorumSize) return 'for';
    const locked = [...votesAgainst.values()].filter((error) => error instanceof this.library.ResourceLockedError);
    return locked.length >= quorumSize ? 'locked' : 'failed';
  }
}

/** Long enough for any machine. */
export const LONG_MS = 60_000;
/** Soon over. */
export const SHORT_MS = 1_000;

/** Resolves when the instance has emitted this many errors for each of its clients. */
export function errorsOf(redlock: RedlockLike, count: number): Promise<void> {
  let seen = 0;
  return new Promise((resolve) => {
    redlock.on('error', () => {
      if (++seen >= count * redlock.clients.size) resolve();
    });
  });
}

/** Waits until this moment is past, such as the expiration of a lock. */
export async function untilPast(wallMs: number): Promise<void> {
  await eventually('it has expired', () => Date.now() > wallMs);
}
