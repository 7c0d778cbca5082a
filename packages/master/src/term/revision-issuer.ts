import { ServiceError } from '@remora/base';
import type { Done, DrawRevisionsReply, DrawRevisionsRequest, RangeBlock } from '@remora/protocol';
import type { Group, Refusal } from '@remora/raft';

export interface RevisionIssuerDeps {
  readonly group: () => Pick<Group, 'role' | 'term' | 'leaseRead'>;
  /** The bound in the applied state: nothing above it was ever allocated. */
  readonly bound: () => number;
  /** Raises the bound through the log; calls `done` when that is applied, or with the error if that is not known. */
  readonly lift: (upTo: number, done: (error: ServiceError | undefined) => void) => void;
  readonly notLeader: () => ServiceError;
  readonly refusal: (refused: Refusal) => ServiceError | undefined;
  /** Revisions by which the bound is raised beyond the current need. */
  readonly window: number;
}

interface Waiting {
  readonly term: number;
  readonly request: DrawRevisionsRequest;
  readonly done: Done<DrawRevisionsReply>;
}

/**
 * Confirmed requests that wait for the bound; more are refused. A node has one request in progress, so this counts
 * nodes.
 */
const WAITING_MAX = 10_000;

/**
 * Assigns revisions, on the leader of the master group (design §8).
 *
 * V1. Uniqueness. A leader assigns revisions above the bound that it found when its term began, and at or below a bound
 *     that was applied since. So everything that an earlier leader assigned, or still assigns, is lower. The rest of a
 *     window is skipped when its leader changes.
 * V2. Real-time order. If an answer is known before another request is sent, the latter gets higher revisions. A
 *     request is served only after this master is known to have led, in its current term, *after the request arrived*:
 *     under the leader's lease, or else by a ReadIndex round, which all requests of a turn share. A leader of a later
 *     term is then elected after the request arrived, so what it assigns was not known when the request was sent; and
 *     earlier leaders assigned lower ones (V1).
 * V3. A request names a floor. Afterwards no revision at or below it is assigned: the bound applied before the answer
 *     is above the floor, and a later leader starts above the bound.
 * V4. A request gets revisions only from the leader, and in the term, at which it arrived. Revisions that were assigned
 *     but not used, because an answer was lost, are never assigned again.
 */
export class RevisionIssuer {
  readonly #deps: RevisionIssuerDeps;
  /** The term of the following fields. */
  #term = 0;
  #next = 0;
  #lifting = false;
  /** Confirmed (V2), in the order in which they are served. */
  #confirmed: Waiting[] = [];

  constructor(deps: RevisionIssuerDeps) {
    this.#deps = deps;
  }

  /** The number of requests that wait for a higher bound. */
  get waiting(): number {
    return this.#confirmed.length;
  }

  /** Called on a leader that has applied an entry of its own term. */
  draw(request: DrawRevisionsRequest, done: Done<DrawRevisionsReply>): void {
    const group = this.#deps.group();
    const { term } = group;
    group.leaseRead((refused) => {
      if (refused !== undefined) done(this.#deps.refusal(refused) ?? this.#deps.notLeader(), undefined);
      else if (!this.#leads(term)) done(this.#deps.notLeader(), undefined);
      else if (this.#confirmed.length >= WAITING_MAX) done(tooMany(), undefined);
      else {
        this.#confirmed.push({ term, request, done });
        this.#serve();
      }
    });
  }

  /** A new term begins, or none: waiting requests must go to its leader (V4). */
  roleChanged(): void {
    const waiting = this.#confirmed;
    this.#confirmed = [];
    for (const { done } of waiting) done(this.#deps.notLeader(), undefined);
  }

  #leads(term: number): boolean {
    const group = this.#deps.group();
    return group.role === 'leader' && group.term === term;
  }

  #serve(): void {
    while (true) {
      const waiting = this.#confirmed[0];
      if (waiting === undefined) return this.#liftAhead();
      if (this.#leads(waiting.term)) {
        this.#begin(waiting.term);
        if (!this.#covers(waiting.request)) return;
      }
      this.#confirmed.shift();
      if (this.#leads(waiting.term)) waiting.done(undefined, this.#give(waiting.request));
      else waiting.done(this.#deps.notLeader(), undefined);
    }
  }

  /** V1. */
  #begin(term: number): void {
    if (this.#term === term) return;
    this.#term = term;
    this.#next = this.#deps.bound() + 1;
    this.#lifting = false;
  }

  /** Whether the bound is high enough (V1, V3); starts to raise it if not. */
  #covers({ floor, draws }: DrawRevisionsRequest): boolean {
    const wanted = draws.reduce((sum, { count }) => sum + count, 0);
    const last = Math.max(this.#next - 1, floor) + wanted;
    if (last <= this.#deps.bound()) return true;
    this.#lift(last);
    return false;
  }

  #give({ floor, draws }: DrawRevisionsRequest): DrawRevisionsReply {
    this.#next = Math.max(this.#next, floor + 1);
    const blocks = draws.map(({ rangeId, count }): RangeBlock => {
      const first = this.#next;
      this.#next += count;
      return { rangeId, first, count };
    });
    return { newest: this.#next - 1, blocks };
  }

  /**
   * Raises the bound before the window is used up, so that no request waits for the log. Not before anything was
   * allocated in this term.
   */
  #liftAhead(): void {
    if (this.#term === 0 || !this.#leads(this.#term)) return;
    if (this.#deps.bound() - this.#next < this.#deps.window / 2) this.#lift(this.#next);
  }

  #lift(atLeast: number): void {
    if (this.#lifting) return;
    this.#lifting = true;
    const term = this.#term;
    this.#deps.lift(Math.max(atLeast, this.#deps.bound()) + this.#deps.window, (error) => {
      if (this.#term !== term) return;
      this.#lifting = false;
      if (error === undefined) this.#serve();
      else this.#fail(error);
    });
  }

  #fail(error: ServiceError): void {
    const waiting = this.#confirmed;
    this.#confirmed = [];
    for (const { done } of waiting) done(error, undefined);
  }
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many requests wait for revisions; try again later');
}
