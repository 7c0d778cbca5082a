import { LazySet, ServiceError } from '@remora/base';
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
  /** Reports the log position by which all blocks requested before the call are used up (`Proposals.whenSettled`). */
  readonly whenSettled: (done: (index: number) => void) => void;
  readonly notLeader: () => ServiceError;
  /** The error while it closes nothing: the range is sealed for a merge. */
  readonly sealed: () => ServiceError | undefined;
}

export type ClosedDone = (error: ServiceError | undefined) => void;

interface Waiting {
  readonly revision: number;
  readonly done: ClosedDone;
}

/** Callers that wait for transactions in progress (CL6). */
interface Passing {
  /** The log position, once known: when it is applied, all earlier blocks are used up. */
  settledAt: number | undefined;
  readonly done: ClosedDone;
}

/** The conditions for closing the revision of a round; there is one round at a time (CL2). */
interface Round {
  readonly revision: number;
  /** The log position, once known: when it is applied, all earlier blocks are used up. */
  settledAt: number | undefined;
  confirmed: boolean;
}

/** The largest number of callers that wait for a closed revision, or for transactions in progress; more are refused. */
const WAITING_MAX = 10_000;

/**
 * The revision up to which a range is complete: all its later writes are above it (design §8).
 *
 * CL1. On every replica the last applied revision is closed: apply allocates none at or below it (numbering.ts N3).
 * CL2. A leader closes a higher revision P, which the master had given to others before they asked here, when after
 *      their question
 *      - the request for a block that was in progress has ended, and what was proposed by then is applied. A block that
 *        is requested later is above P (V2 of the master's issuer), and no other serves (revision-allocation-queue.ts
 *        B1, B2);
 *      - leadership was confirmed, by its lease or a ReadIndex round. So a later leader is elected after that, and the
 *        blocks that it requests are above P too. Writes of earlier leaders come before the first entry of this term,
 *        and are applied.
 * CL3. No revision is closed at or above one at which a prepared transaction may still commit.
 * CL4. A closed revision stays closed. It is remembered when leadership is lost. It is also remembered when a
 *      transaction is prepared: that transaction's revision is drawn later, and is therefore above it. Waiters that
 *      lose the leader have to ask the new one. A merge brings keys with a lower closed revision: only that revision is
 *      remembered then.
 * CL5. The range moves on to a revision, other than by writing, only if the master has allocated that revision.
 *      Otherwise the master's later blocks would be below it, and every client that names too high a revision could
 *      cause that.
 * CL6. A caller that names a revision may know it from another range, while a block below it is in use here. Once that
 *      block is used up and leadership is confirmed, as for CL2, the range writes nothing at or below any revision that
 *      was allocated before. So the range need not know these revisions, and does not close future ones.
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
  readonly #passing = new LazySet<Passing>();

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
   * The range itself may have allocated revisions at or below this one, before the master numbered it: a revision from
   * the master may be below what the range had acknowledged by then. A read at such a revision has to draw another one,
   * above this.
   */
  get floor(): number {
    const { state } = this.#deps;
    if (state.descriptor.revisionSource === 'range') return state.revision;
    // Set at the first question, which is after the master began to number the range.
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
   * Calls `done` once `revision`, drawn from the master before this call, is closed; returns a function that cancels
   * the call. The revision must be allocated: the master would give this range blocks below a revision that is not.
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
   * Closes, if possible, a revision at or above any that was allocated before this call: otherwise an idle range does
   * not learn how far others are. A range that counts by itself has no other source: it has closed what it has applied,
   * if it leads; a later leader may have written more.
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
   * CL6. Calls `done` once the range writes nothing at or below `revision` any more. The revision must have been
   *      allocated before this call, and this replica must have been confirmed as leader after that. Commits of
   *      prepared transactions are not considered. Returns a function that cancels the call.
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

  /** CL5. Whether a revision is known to be allocated; for a range that counts by itself, apply knows. */
  isGiven(revision: number): boolean {
    const { state } = this.#deps;
    return revision <= state.revision || state.descriptor.revisionSource === 'range';
  }

  /** CL5. Calls back without an error once a revision is known to be allocated. */
  whenGiven(revision: number, done: ClosedDone): void {
    if (this.isGiven(revision)) return done(undefined);
    const { state, source } = this.#deps;
    source.newest(state.revision, (error, newest) => {
      if (newest === undefined) done(notKnown(revision, error));
      else done(revision <= newest ? undefined : notGiven(revision, newest));
    });
  }

  /** An entry was applied. A round also continues without waiters: otherwise it would block the next one. */
  applied(): void {
    if (this.#passing.size > 0) this.#pass();
    if (this.#waiting.length === 0 && this.#round === undefined) return;
    this.#advance();
  }

  /** Leadership is lost (CL4), or another error prevents closing. */
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

  /** A round begins after the callers that it serves have arrived (CL2). */
  #begin(): void {
    if (this.#round !== undefined) return;
    const highest = this.#waiting.reduce((high, { revision }) => Math.max(high, revision), 0);
    if (highest <= this.#confirmed) return; // a prepared transaction holds it back
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

/** The caller retries. */
function notKnown(revision: number, cause: ServiceError | undefined): ServiceError {
  return new ServiceError(
    'UNAVAILABLE',
    `it is not known whether the master has allocated revision ${revision}; try again later`,
    {
      cause,
    },
  );
}

/** The next change gets the last revision plus one: nothing above the last can be closed. */
function notDrawn(revision: number): ServiceError {
  return new ServiceError(
    'FUTURE_REVISION',
    `revision ${revision} is in the future: this range counts its revisions itself`,
  );
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many wait for the range to close a revision; try again later');
}
