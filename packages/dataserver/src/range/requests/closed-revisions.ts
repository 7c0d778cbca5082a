import { ServiceError } from '@remora/base';
import type { Group, Refusal } from '@remora/raft';
import type { RevisionSource } from '../../revisions/revision-drawer.ts';
import type { RangeFields } from '../../state/range-fields.ts';

/** Transactions over several ranges that are prepared in this one. */
interface PreparedTransactions {
  /** The lowest revision at which one of them may still commit; infinity when none may. */
  earliestCommit(): number;
}

export interface ClosedRevisionsDeps {
  readonly state: Pick<RangeFields, 'revision' | 'applied' | 'descriptor'>;
  readonly prepared: PreparedTransactions;
  readonly source: Pick<RevisionSource, 'newest'>;
  readonly group: () => Pick<Group, 'role' | 'term' | 'leaseRead'>;
  /** Tells the log position by which all blocks requested before the call are used up (`Proposals.whenSettled`). */
  readonly whenSettled: (done: (index: number) => void) => void;
  readonly notLeader: () => ServiceError;
  /** Why it closes nothing any more: it is sealed for a merge. */
  readonly sealed: () => ServiceError | undefined;
}

export type ClosedDone = (error: ServiceError | undefined) => void;

interface Waiting {
  readonly revision: number;
  readonly done: ClosedDone;
}

/** Callers that wait for transactions in progress (CL6). */
interface Passing {
  /** Of the log, once it is known: applied up to there, all earlier blocks are used up. */
  settledAt: number | undefined;
  readonly done: ClosedDone;
}

/** What has to be seen before the revision of a round is closed; there is one round at a time (CL2). */
interface Round {
  readonly revision: number;
  /** Of the log, once it is known: applied up to there, all earlier blocks are used up. */
  settledAt: number | undefined;
  confirmed: boolean;
}

/** Who waits for a revision to be closed, or for what was under way; more are refused. */
const WAITING_MAX = 10_000;

/**
 * Up to which revision a range is complete: nothing that it writes later is at or below it (design §8).
 *
 * CL1. That holds of the last revision applied, on every replica: apply gives none at or below it (numbering.ts N3).
 * CL2. A leader closes a higher P, given to others by the master before they asked here, when, after they asked,
 *      - the request for a block that was under way has ended, and what was proposed by then is applied. A block that
 *        is requested later is above P (V2 of the master's issuer), and no other serves (revision-allocation-queue.ts
 *        B1, B2);
 *      - leadership was confirmed, by its lease or a ReadIndex round. So a later leader is elected after that, and what
 *        it requests is above P too. What earlier leaders wrote comes before the first entry of this term, and is
 *        applied.
 * CL3. No revision is closed at or above one at which a prepared transaction may still commit.
 * CL4. What is closed stays closed: it is remembered when leadership is lost, and when a transaction is prepared, whose
 *      revision is drawn after that and so is above what was closed before. Who waits when leadership is lost is told
 *      to ask the leader. A merge brings keys of which less is closed: nothing is remembered beyond it.
 * CL5. What the range moves on to, other than by writing, the master has given out: what it gives the range later would
 *      be below that, and every client that names too high a revision would move it there.
 * CL6. Whoever names a revision may know of it by another range, while a block below it is under way here. Once that is
 *      used up, and leadership is confirmed, as for CL2, nothing comes at or below a revision that anybody had been
 *      given before. So nobody has to be asked which revisions those are, and the range closes nothing that may be yet
 *      to come.
 */
export class ClosedRevisions {
  readonly #deps: ClosedRevisionsDeps;
  /** CL2. */
  #confirmed = 0;
  #floor = 0;
  /** CL4. */
  #closed = 0;
  #round: Round | undefined;
  #waiting: Waiting[] = [];
  readonly #passing = new Set<Passing>();

  constructor(deps: ClosedRevisionsDeps) {
    this.#deps = deps;
  }

  /** The highest revision known to be closed here. */
  get closed(): number {
    const { state, prepared } = this.#deps;
    const closed = Math.min(Math.max(state.revision, this.#confirmed), prepared.earliestCommit() - 1); // CL1, CL3
    this.#closed = Math.max(this.#closed, closed); // CL4
    return this.#closed;
  }

  /**
   * Revisions at or below it may have been counted by the range itself, before the master did: one that the master gave
   * out may be below what the range had acknowledged by then. Who reads at such a revision has to draw another, above
   * this one.
   */
  get floor(): number {
    const { state } = this.#deps;
    if (state.descriptor.revisionSource === 'range') return state.revision;
    // As it begins to be asked for, which is after the range began to be numbered by the master.
    if (this.#floor === 0) this.#floor = state.revision;
    return this.#floor;
  }

  /** The range has other keys now (CL4). */
  keysChanged(): void {
    this.#closed = 0;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Calls `done` once `revision`, drawn from the master before this call, is closed; gives what takes it back. Nobody
   * may ask for one that the master has not given out: those that it gives to this range would be below it.
   */
  whenClosed(revision: number, done: ClosedDone): () => void {
    const waiting = { revision, done };
    const sealed = this.#deps.sealed();
    if (revision <= this.closed) done(undefined);
    else if (sealed !== undefined) done(sealed);
    else if (this.#deps.state.descriptor.revisionSource === 'range') done(notDrawn(revision));
    else if (this.#waiting.length >= WAITING_MAX) done(tooMany());
    else {
      this.#waiting.push(waiting);
      this.#begin();
    }
    return () => {
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
    };
  }

  /**
   * Closes a revision that is at or above any that anybody was given before this call, if it can: an idle range learns
   * only so how far others are. A range that counts by itself has nobody to ask; it has closed what it has applied, if
   * it leads: a later leader may have written more.
   */
  closeNewest(done: ClosedDone): void {
    if (this.#deps.state.descriptor.revisionSource === 'range') {
      this.#deps.group().leaseRead((refused) => done(refused === undefined ? undefined : this.#refusal(refused)));
      return;
    }
    this.#deps.source.newest(this.#deps.state.revision, (error, newest) => {
      if (newest === undefined) done(error ?? this.#deps.notLeader());
      else this.whenClosed(newest, done);
    });
  }

  /**
   * CL6. Calls `done` once the range writes nothing at or below `revision` any more, provided that it was given out
   * before this call, and that this replica was known to lead after it had been. What prepared transactions commit is
   * left out. Returns what gives up.
   */
  whenUsedUp(revision: number, done: ClosedDone): () => void {
    const { state, whenSettled } = this.#deps;
    const passing: Passing = { settledAt: undefined, done };
    if (revision <= Math.max(state.revision, this.closed) || state.descriptor.revisionSource === 'range')
      done(undefined);
    else if (this.#passing.size >= WAITING_MAX) done(tooMany());
    else {
      this.#passing.add(passing);
      whenSettled((index) => {
        passing.settledAt = index;
        this.#pass();
      });
    }
    return () => this.#passing.delete(passing);
  }

  /** CL5. Whether a revision is known to be given out; of a range that counts by itself, apply knows. */
  isGiven(revision: number): boolean {
    const { state } = this.#deps;
    return revision <= state.revision || state.descriptor.revisionSource === 'range';
  }

  /** CL5. Calls back without an error once it is known that a revision was given out. */
  whenGiven(revision: number, done: ClosedDone): void {
    if (this.isGiven(revision)) return done(undefined);
    const { state, source } = this.#deps;
    source.newest(state.revision, (error, newest) => {
      if (newest === undefined) done(notKnown(revision, error));
      else done(revision <= newest ? undefined : notGiven(revision, newest));
    });
  }

  /** An entry was applied. A round goes on also when nobody waits any more: it would be in the way of the next one. */
  applied(): void {
    if (this.#passing.size > 0) this.#pass();
    if (this.#waiting.length === 0 && this.#round === undefined) return;
    this.#advance();
  }

  /** Leadership is lost (CL4), or another error keeps what is asked for from being closed. */
  abandon(error: ServiceError = this.#deps.notLeader()): void {
    this.#round = undefined;
    this.#fail(error);
    const passing = [...this.#passing];
    this.#passing.clear();
    for (const { done } of passing) done(error);
  }

  /** CL6. */
  #pass(): void {
    const { index } = this.#deps.state.applied;
    for (const passing of this.#passing) {
      const { settledAt, done } = passing;
      if (settledAt !== undefined && settledAt <= index && this.#passing.delete(passing)) done(undefined);
    }
  }

  /** Rounds begin after those came whom they are for (CL2). */
  #begin(): void {
    if (this.#round !== undefined) return;
    const highest = this.#waiting.reduce((high, { revision }) => Math.max(high, revision), 0);
    if (highest <= this.#confirmed) return; // a prepared transaction is waited for
    const round: Round = { revision: highest, settledAt: undefined, confirmed: false };
    this.#round = round;
    const group = this.#deps.group();
    const { term } = group;
    this.#deps.whenSettled((index) => {
      round.settledAt = index;
      this.#advance();
    });
    group.leaseRead((refused) => {
      if (this.#round !== round) return;
      const now = this.#deps.group();
      if (refused === undefined && now.role === 'leader' && now.term === term) {
        round.confirmed = true;
        this.#advance();
      } else {
        this.#round = undefined;
        this.#fail(this.#refusal(refused));
      }
    });
  }

  #advance(): void {
    const round = this.#round;
    const { state } = this.#deps;
    if (round?.confirmed && round.settledAt !== undefined && state.applied.index >= round.settledAt) {
      this.#round = undefined;
      this.#confirmed = Math.max(this.#confirmed, round.revision);
    }
    this.#answer();
    if (this.#waiting.length > 0) this.#begin();
  }

  #answer(): void {
    const { closed } = this;
    if (!this.#waiting.some(({ revision }) => revision <= closed)) return;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ revision }) => revision > closed);
    for (const { revision, done } of waiting) if (revision <= closed) done(undefined);
  }

  #refusal(refused: Refusal | undefined): ServiceError {
    return refused === 'queueFull' ? tooMany() : this.#deps.notLeader();
  }

  #fail(error: ServiceError): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { done } of waiting) done(error);
  }
}

function notGiven(revision: number, newest: number): ServiceError {
  const message = `revision ${revision} is in the future; the newest is ${newest}`;
  return new ServiceError('FUTURE_REVISION', message, { details: { revision: newest } });
}

/** Whoever asks tries again. */
function notKnown(revision: number, cause: ServiceError | undefined): ServiceError {
  return new ServiceError('UNAVAILABLE', `the master has not said whether revision ${revision} was given out`, {
    cause,
  });
}

/** The next change gets one more than the last: nothing above that can be closed. */
function notDrawn(revision: number): ServiceError {
  return new ServiceError('FUTURE_REVISION', `revision ${revision} is in the future of a range that counts by itself`);
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many wait for the range to close a revision; try again later');
}
