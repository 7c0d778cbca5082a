/**
 * Finds leases that have attachments here although their homes no longer know them. A home that lost its majority goes
 * on without some of what it had acknowledged (docs/decisions/0031): a lease, or the fact that this range has
 * attachments of it. Then nothing else would notify this range of the lease's end. Part of a range's leader.
 *
 * LA1. The home is asked about each reference, one at a time, and about all of them again and again. It knew the lease
 *      before there was a reference (RG1 of lease-registrar.ts), and its answer includes everything that was
 *      acknowledged there: if it does not know this incarnation, the lease has ended, or is lost.
 * LA2. Then the lease ends here, as if the home had notified this range (LC2, LC3 of lease-commands.ts): within the
 *      range's keys, for this incarnation alone, until nothing is left.
 * LA3. A missing answer means nothing, and so does an answer to a question of an earlier term.
 * LA4. A range without references has no timer. The timer begins with the entry that brings the first reference, so a
 *      reference is asked about within one interval, however rarely periodic work visits the range.
 */
import type { Clock, ServiceError, Span, Timer } from '@remora/base';
import type { LeaseCommand, QueryResult } from '@remora/protocol';
import type { LeaseReference } from '../../state/leases/lease-references.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';

type End = Extract<LeaseCommand, { readonly type: 'leaseEnd' }>;
type Named = Pick<LeaseReference, 'id' | 'incarnation'>;

export interface LeaseAuditDeps {
  readonly clock: Clock;
  readonly references: { readonly size: number; all(): Iterable<Named> };
  readonly others: Pick<OtherRanges, 'query'>;
  /** The part of the range's keys that can belong to leases, if any. */
  readonly span: () => Span | undefined;
  /** `done` learns whether there is more to delete; undefined if it was not applied. */
  readonly propose: (command: End, done: (more: boolean | undefined) => void) => void;
  /** Whether the lease has no attachments here. */
  readonly isEmpty: (id: bigint) => boolean;
  /** The lease has no attachments here, and ends when it has none anywhere. */
  readonly onEmpty: (lease: Named) => void;
  /** The time from the end of one round, or the beginning of a term, to the next round. */
  readonly intervalMs?: number | undefined;
}

const INTERVAL_MS = 300_000;
/** The pause between questions: bounds the load that a range with many references puts on others. */
const PAUSE_MS = 20;
/** The pause before more of one lease's attachments are deleted: a transaction may delay that. */
const MORE_PAUSE_MS = 100;
const ASK_TIMEOUT_MS = 5_000;

export class LeaseAudit {
  readonly #deps: LeaseAuditDeps;
  /** Grows with each term: what was begun in an earlier one is over. */
  #life = 0;
  #serving = false;
  /** A round is in progress, or the pause before it. */
  #busy = false;
  #timer: Timer | undefined;
  #giveUp: () => void = () => {};

  constructor(deps: LeaseAuditDeps) {
    this.#deps = deps;
  }

  /** Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.stop();
    this.#serving = true;
    this.applied();
  }

  /** LA4. Called after each entry. */
  applied(): void {
    if (this.#serving && !this.#busy && this.#deps.references.size > 0) this.#rest();
  }

  stop(): void {
    this.#life++;
    this.#serving = false;
    this.#busy = false;
    this.#timer?.cancel();
    this.#giveUp();
    this.#giveUp = () => {};
  }

  #rest(): void {
    this.#busy = this.#deps.references.size > 0;
    if (!this.#busy) return;
    this.#after(this.#deps.intervalMs ?? INTERVAL_MS, () => {
      this.#next(Array.from(this.#deps.references.all(), ({ id, incarnation }) => ({ id, incarnation })));
    });
  }

  /** Asks about the first of `left`, the leases that are still to be asked about. */
  #next(left: readonly Named[], at = 0): void {
    const lease = left[at];
    if (lease === undefined) return this.#rest();
    this.#ask(lease, () => this.#after(PAUSE_MS, () => this.#next(left, at + 1)));
  }

  /** LA1. */
  #ask({ id, incarnation }: Named, done: () => void): void {
    const life = this.#life;
    const query = { type: 'leaseTimeToLive', id, keys: false } as const;
    this.#giveUp = this.#deps.others.query(query, { timeoutMs: ASK_TIMEOUT_MS }, (error, reply) => {
      if (life !== this.#life) return; // LA3
      const result = reply?.result;
      if (isUnknown(incarnation, error, result)) return this.#end({ id, incarnation }, done);
      const mayEnd = result?.type === 'leaseTimeToLive' && result.lease.endsEmpty;
      if (mayEnd && this.#deps.isEmpty(id)) this.#deps.onEmpty({ id, incarnation });
      done();
    });
  }

  /** LA2. */
  #end(lease: Named, done: () => void): void {
    const span = this.#deps.span();
    if (span === undefined) return done();
    const life = this.#life;
    this.#deps.propose({ type: 'leaseEnd', ...lease, span }, (more) => {
      if (life !== this.#life) return;
      if (more === true) this.#after(MORE_PAUSE_MS, () => this.#end(lease, done));
      else done();
    });
  }

  #after(ms: number, work: () => void): void {
    this.#timer = this.#deps.clock.setTimer(ms, work);
  }
}

function isUnknown(incarnation: number, error: ServiceError | undefined, result: QueryResult | undefined): boolean {
  if (error !== undefined || result?.type !== 'leaseTimeToLive') return false;
  return result.lease.incarnation !== incarnation;
}
