/**
 * Finds leases that have something here and that their homes know no more. A home that lost its majority goes on
 * without some of what it had acknowledged (docs/decisions/0031): a lease, or that this range has something of it.
 * Nobody else would ever tell this range of its end. Part of a range's leader.
 *
 * LA1. The home is asked of each reference, of one at a time, and of all of them again and again. It was told of the
 *      lease before there was a reference (RG1 of lease-registrar.ts), and is read with all that was acknowledged
 *      there: if it does not know this incarnation, that has ended, or is lost.
 * LA2. Then it ends here, as if the home had told so (LC2, LC3 of lease-commands.ts): where the range's keys are, of
 *      this incarnation alone, until nothing is left.
 * LA3. No answer says nothing, nor does one that an earlier term asked for.
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
  /** What of the range's keys can belong to leases, if anything. */
  readonly span: () => Span | undefined;
  /** Told whether there is more to be taken away; undefined when it was not applied. */
  readonly propose: (command: End, done: (more: boolean | undefined) => void) => void;
  /** Whether nothing here belongs to it. */
  readonly isEmpty: (id: bigint) => boolean;
  /** It has nothing here, and is one that ends when it has nothing anywhere. */
  readonly onEmpty: (lease: Named) => void;
  /** From the end of one round, or the beginning of a term, to the next round. */
  readonly intervalMs?: number | undefined;
}

const INTERVAL_MS = 300_000;
/** From one question to the next: bounds what a range with many references asks of others. */
const PAUSE_MS = 20;
/** Before more of what one lease has is taken away: a transaction may hold it up for a while. */
const MORE_PAUSE_MS = 100;
const ASK_TIMEOUT_MS = 5_000;

export class LeaseAudit {
  readonly #deps: LeaseAuditDeps;
  /** Grows with each term: what was begun in an earlier one is over. */
  #life = 0;
  #timer: Timer | undefined;
  #giveUp: () => void = () => {};

  constructor(deps: LeaseAuditDeps) {
    this.#deps = deps;
  }

  /** Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.stop();
    this.#rest();
  }

  stop(): void {
    this.#life++;
    this.#timer?.cancel();
    this.#giveUp();
    this.#giveUp = () => {};
  }

  #rest(): void {
    this.#after(this.#deps.intervalMs ?? INTERVAL_MS, () => {
      const { references } = this.#deps;
      this.#next(
        references.size === 0 ? [] : Array.from(references.all(), ({ id, incarnation }) => ({ id, incarnation })),
      );
    });
  }

  /** The first of `left`, which are still to be asked of. */
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
