/**
 * Notifies every range that may have attachments of a lease that the lease has ended. Part of the leader of the lease's
 * home (docs/decisions/0025).
 *
 * LE1. The spans that are left to notify are replicated state (S4 of the leases): a new leader continues. A range is
 *      notified only after the end is applied here, and again until it has answered.
 * LE2. A span is settled by the answer of the range that has its keys, after that range has applied the end and has
 *      nothing left. Only the part that the answer names is settled: the ranges of the rest are notified separately.
 * LE3. A range that does not answer delays no other: each span is handled by itself. If there are more spans than can
 *      be notified at a time, an unsuccessful one is retried only when all others had their turn.
 * LE4. Callers that wait for a lease to be gone have ended it: that is applied. So no caller gets an error that denies
 *      it, such as STALE_EPOCH when the record goes to another range by a split or a merge (CM3 of commands.ts). A
 *      caller that repeats the request under the same request id is routed there.
 */
import { type Clock, LazyMap, ServiceError, type Span } from '@remora/base';
import type { LeaseCommand } from '@remora/protocol';
import type { Lease, Leases } from '../../state/leases/leases.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';

type Settle = Extract<LeaseCommand, { readonly type: 'leaseSettle' }>;
type GoneDone = (error: ServiceError | undefined) => void;

export interface LeaseEndingsDeps {
  readonly clock: Clock;
  readonly leases: Pick<Leases, 'ending' | 'allEnding'>;
  /** Whether this range is the home of a lease, if the lease exists. */
  readonly isHome: (id: bigint) => boolean;
  readonly others: OtherRanges;
  /** `done` learns whether it was applied. */
  readonly propose: (command: Settle, done: (applied: boolean) => void) => void;
}

/** Spans that are notified at a time; more wait. */
const TELLING_MAX = 2_000;
const TELL_TIMEOUT_MS = 5_000;
/** The pause before a span whose range could not be reached is notified again. */
const PAUSE_MS = 100;
/** The same if the range has more to delete, or to wait for. */
const MORE_PAUSE_MS = 10;
/** Callers that wait for leases to be gone; more get the error that it is not known. */
const WAITING_MAX = 10_000;

export class LeaseEndings {
  readonly #deps: LeaseEndingsDeps;
  /** By lease and start of the span: the function that cancels the call. */
  readonly #telling = new LazyMap<string, () => void>();
  readonly #waiting = new LazyMap<bigint, GoneDone[]>();
  #waits = 0;
  /** Grows with each term: what was begun in an earlier one is over. */
  #life = 0;
  #serving = false;
  /** There were too many spans to notify all (TELLING_MAX). */
  #full = false;
  /** LE3. The last lease whose turn it was. */
  #last = 0n;

  constructor(deps: LeaseEndingsDeps) {
    this.#deps = deps;
  }

  /** The number of callers that wait for a lease to be gone. */
  get waits(): number {
    return this.#waits;
  }

  /** LE1. Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.#serving = true;
    this.#life++;
    this.look();
  }

  /** Waiting callers ask the new leader. */
  stop(): void {
    this.#serving = false;
    this.#life++;
    const telling = [...this.#telling.values()];
    this.#telling.clear();
    for (const giveUp of telling) giveUp();
    for (const id of [...this.#waiting.keys()]) this.#answer(id, notKnown());
  }

  /** Whether anything has to be done about a lease. */
  concerns(id: bigint): boolean {
    return this.#serving && (this.#deps.leases.ending(id) !== undefined || this.#waiting.has(id));
  }

  /** A lease may have ended, or have gone to another range. Cheap while no lease is ending. */
  look(): void {
    if (!this.#serving) return;
    for (const id of [...this.#waiting.keys()]) this.#lookFor(id);
    this.#tellAll();
  }

  #lookFor(id: bigint): void {
    if (this.#deps.leases.ending(id) === undefined) this.#gone(id);
  }

  #tellAll(): void {
    this.#full = false;
    for (const lease of this.#inTurn()) {
      if (this.#telling.size < TELLING_MAX) this.#last = lease.id;
      this.#tellOf(lease);
      if (this.#full) return;
    }
  }

  /** LE3. */
  #inTurn(): readonly Lease[] {
    const leases = [...this.#deps.leases.allEnding()];
    const behind = leases.findIndex(({ id }) => id === this.#last) + 1;
    return [...leases.slice(behind), ...leases.slice(0, behind)];
  }

  #tellOf(lease: Lease): void {
    for (const span of lease.spans) {
      if (this.#telling.size >= TELLING_MAX) {
        this.#full = true;
        return;
      }
      this.#tell(lease, span);
    }
  }

  /** A span was notified, or has to be notified again. */
  #told(id: bigint): void {
    const lease = this.#deps.leases.ending(id);
    if (lease === undefined) this.#gone(id);
    else if (!this.#full) this.#tellOf(lease);
    if (this.#full && this.#telling.size < TELLING_MAX / 2) this.#tellAll();
  }

  /** Calls `done` once nothing is left of an ended lease anywhere; with an error if that is not known. */
  whenGone(id: bigint, done: GoneDone): void {
    if (!this.#deps.isHome(id)) return done(notKnown()); // LE4
    if (this.#deps.leases.ending(id) === undefined) return done(undefined);
    if (!this.#serving || this.#waits >= WAITING_MAX) return done(notKnown());
    this.#waits++;
    this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), done]);
  }

  /** Either nothing is left of the lease, or its record has gone to another range (LE4). */
  #gone(id: bigint): void {
    this.#answer(id, this.#deps.isHome(id) ? undefined : notKnown());
  }

  #answer(id: bigint, error: ServiceError | undefined): void {
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    this.#waits -= waiting.length;
    for (const done of waiting) done(error);
  }

  #tell({ id, incarnation }: Lease, span: Span): void {
    const name = `${id}/${Buffer.from(span.start).toString('latin1')}`;
    if (this.#telling.has(name)) return;
    this.#telling.set(name, () => {});
    const life = this.#life;
    const over = (): void => {
      if (life === this.#life && this.#telling.delete(name)) this.#told(id);
    };
    const again = (pauseMs: number): void => void this.#deps.clock.setTimer(pauseMs, over);
    const command = { type: 'leaseEnd', id, incarnation, span } as const;
    const giveUp = this.#deps.others.command(command, { timeoutMs: TELL_TIMEOUT_MS }, (_error, reply) => {
      if (life !== this.#life) return;
      const result = reply?.result;
      if (result?.type !== 'leaseEnd') again(PAUSE_MS);
      else if (result.more) again(MORE_PAUSE_MS);
      else {
        const settle = { type: 'leaseSettle', id, incarnation, span: result.covered } as const; // LE2
        this.#deps.propose(settle, (applied) => (applied ? over() : again(PAUSE_MS)));
      }
    });
    if (this.#telling.has(name)) this.#telling.set(name, giveUp);
  }
}

function notKnown(): ServiceError {
  return new ServiceError('UNKNOWN_OUTCOME', 'the lease has ended, but not everywhere as far as is known');
}
