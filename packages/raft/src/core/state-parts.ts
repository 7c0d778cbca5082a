/** Parts of a replica's state that only hold data. The files that use them state the rules. */
import { LazyMap } from '@remora/base';
import type { Entry, EntryRead, Moment, ReplicaId } from './types.ts';

export const NOBODY: readonly ReplicaId[] = [];
export const NO_TRIAL = Number.MAX_SAFE_INTEGER;

/** Rounds of heartbeats whose send times are remembered; answers to older ones do not count for a lease. */
const ROUNDS_MAX = 16;

interface InFlight {
  readonly read: EntryRead;
  /** The log's truncations at the time of the request (B4). */
  readonly truncations: number;
}

/** Entries that left memory and are being read back (rules B1 to B4 of entry-reads.ts). */
export class EntryReads {
  /** Requested with the next `Ready`. */
  wanted: EntryRead[] = [];
  /** Read back, to be applied next. */
  loaded: readonly Entry[] | undefined;
  readonly #inFlight = new LazyMap<ReplicaId, InFlight>();

  isInFlight(reader: ReplicaId): boolean {
    return this.#inFlight.has(reader);
  }

  begin(read: EntryRead, truncations: number): void {
    this.wanted.push(read);
    this.#inFlight.set(read.reader, { read, truncations });
  }

  /** Returns what `read` had requested; undefined if nothing was. */
  end(read: EntryRead): InFlight | undefined {
    const inFlight = this.#inFlight.get(read.reader);
    if (inFlight?.read !== read) return undefined;
    this.#inFlight.delete(read.reader);
    return inFlight;
  }
}

/** The send times of a leader's recent rounds of heartbeats. */
export class RoundTimes {
  readonly #rounds: number[] = [];
  readonly #moments: Moment[] = [];

  began(round: number, at: Moment): void {
    if (this.#rounds.length >= ROUNDS_MAX) {
      this.#rounds.shift();
      this.#moments.shift();
    }
    this.#rounds.push(round);
    this.#moments.push(at);
  }

  of(round: number): Moment | undefined {
    return this.#moments[this.#rounds.indexOf(round)];
  }
}

/** What a leader knows for thrifty replication (rules T1 to T4 of thrifty-replication.ts). */
export class ThriftyReplication {
  /** The tick at which the last trial began, and the last of its entries. */
  trialTick = Number.NEGATIVE_INFINITY;
  trialIndex = NO_TRIAL;
  /** T1. */
  countedOn = NOBODY;
  /** Up to here it was decided which followers get the entries at once. */
  decidedTo = 0;
  /** The decision for the last of them. */
  mayWait = false;
  /** Some follower's entries are held back. */
  waiting = false;
  /** The entries held back are about to leave, together with any that follow meanwhile (T3). */
  released = false;
  /** The end of the log at the last review (T3). */
  reviewedTo = 0;

  forget(): void {
    this.trialTick = Number.NEGATIVE_INFINITY;
    this.trialIndex = NO_TRIAL;
    this.countedOn = NOBODY;
    this.mayWait = false;
  }
}
