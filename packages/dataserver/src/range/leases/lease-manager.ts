import { type Clock, type Engine, ServiceError, spanContains } from '@remora/base';
import type { DelayedHold, MarkedUntil, SessionRef } from '@remora/lock';
import type { Command, RangeReply } from '@remora/protocol';
import { attachableSpan } from '../../state/bounds.ts';
import type { AppliedEnd } from '../../state/effects.ts';
import { leaseKey } from '../../state/keys.ts';
import type { Lease } from '../../state/leases/leases.ts';
import { lockReader } from '../../state/locks/engine-lock-view.ts';
import type { Outcome } from '../../state/outcomes/outcome-codec.ts';
import type { RangeState } from '../../state/range-state.ts';
import { LockDelays } from '../locks/lock-delays.ts';
import type { CommandQueue } from '../requests/command-queue.ts';
import type { OtherRanges } from '../reshape/other-ranges.ts';
import { EmptyLeases } from './empty-leases.ts';
import { EndedMarks } from './ended-marks.ts';
import { LeaseAudit } from './lease-audit.ts';
import { LeaseEndRevision, type LeaseEndRevisionDeps } from './lease-end-revision.ts';
import { LeaseEndings } from './lease-endings.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { type Go, LeaseRegistrar } from './lease-registrar.ts';

type RevokeDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

export interface LeaseManagerDeps {
  readonly clock: Clock;
  readonly engine: Engine;
  readonly state: RangeState;
  readonly others: OtherRanges;
  readonly source: LeaseEndRevisionDeps['source'];
  readonly commands: Pick<CommandQueue, 'propose' | 'proposeAlone'>;
  /** LK6 of the keeper. */
  readonly checkpointMs?: number | undefined;
  /** The time from one round of the audit to the next. */
  readonly auditMs?: number | undefined;
  /** The term of the leader that serves here; 0 while there is none. */
  readonly term: () => number;
  /** The time with which its entries are stamped. */
  readonly rangeTimeMs: () => number;
}

/**
 * A range leader's work for leases: those whose home is here, and those with attachments here; also for locks whose
 * hold is delayed after its holder's lease ended, and for marks that have ended.
 */
export class LeaseManager {
  readonly keeper: LeaseKeeper;
  readonly #deps: LeaseManagerDeps;
  readonly #registrar: LeaseRegistrar;
  readonly #endings: LeaseEndings;
  readonly #endRevision: LeaseEndRevision;
  readonly #audit: LeaseAudit;
  readonly #empty: EmptyLeases;
  readonly #delays: LockDelays;
  readonly #marks: EndedMarks;
  #isLookDue = false;

  constructor(deps: LeaseManagerDeps) {
    const { clock, engine, state, others, commands, term, checkpointMs, auditMs, rangeTimeMs } = deps;
    this.#deps = deps;
    this.keeper = new LeaseKeeper({
      clock,
      leases: state.leases,
      checkpointMs,
      propose: (command, done) => commands.propose(command, (outcome) => done(outcome?.ok === true)),
    });
    this.#delays = new LockDelays(clock, state.delays, (command, done) =>
      commands.propose(command, (outcome) => done(outcome?.ok === true)),
    );
    this.#marks = new EndedMarks({
      clock,
      rangeTimeMs,
      view: lockReader(engine),
      routed: () => state.bounds.routed,
      propose: (command, done) => commands.propose(command, () => done()),
    });
    // Follow-up work of an entry does not belong into the step that applies it.
    const soon = (done: (applied: boolean) => void, outcome: Outcome | undefined): void => {
      clock.setImmediate(() => done(outcome?.ok === true));
    };
    this.#registrar = new LeaseRegistrar({
      state,
      others,
      term,
      propose: (command, done) => commands.proposeAlone(command, (_error, outcome) => soon(done, outcome)),
    });
    this.#endings = new LeaseEndings({
      clock,
      others,
      leases: state.leases,
      isHome: (id) => spanContains(state.bounds.routed, leaseKey(id)),
      propose: (command, done) => commands.propose(command, (outcome) => soon(done, outcome)),
    });
    this.#endRevision = new LeaseEndRevision(deps);
    this.#empty = new EmptyLeases({ clock, others, leases: state.leases, intervalMs: auditMs });
    this.#audit = new LeaseAudit({
      clock,
      others,
      references: state.references,
      intervalMs: auditMs,
      span: () => attachableSpan(state.bounds),
      isEmpty: (id) => !state.references.attached.any(id),
      onEmpty: (lease) => this.#empty.look(lease),
      propose: (command, done) => {
        this.#registrar.void(command.id); // RG3
        commands.propose(command, (outcome) => {
          const result = outcome?.ok === true ? outcome.result : undefined;
          clock.setImmediate(() => done(result?.type === 'leaseEnd' ? result.more : undefined));
        });
      },
    });
  }

  /** Commands that wait for a lease of another range, or until a lease is gone everywhere. */
  get waiting(): number {
    return this.#registrar.waiting + this.#endings.waits;
  }

  /** Called once this replica leads and has applied an entry of its own term. */
  start(term: number): void {
    this.keeper.start(term);
    this.#endings.start();
    this.#delays.start();
    this.#marks.start();
    this.#audit.start();
    this.#empty.start();
  }

  stop(error: ServiceError): void {
    this.keeper.stop();
    this.#endings.stop();
    this.#delays.stop();
    this.#marks.stop();
    this.#audit.stop();
    this.#empty.stop();
    this.#registrar.abandon(error);
  }

  /** Called after each entry, which may have brought a lease or a reference. */
  applied(): void {
    this.#audit.applied();
    this.#empty.applied();
  }

  /** The range has other keys now, and perhaps other leases. */
  keysChanged(): void {
    this.#lookSoon();
    this.#marks.keysChanged();
  }

  granted(lease: Lease): void {
    this.keeper.granted(lease);
  }

  /** The lease is no longer alive here. Without `end` its record went to another range. */
  ended(id: bigint, end?: AppliedEnd): void {
    this.keeper.ended(id);
    if (end !== undefined) this.#endRevision.ended(id, end);
    if (this.#endings.concerns(id)) this.#lookSoon();
  }

  /** Runs once for all leases that end until then: each look goes over all that are ending. */
  #lookSoon(): void {
    if (this.#isLookDue) return;
    this.#isLookDue = true;
    this.#deps.clock.setImmediate(() => {
      this.#isLookDue = false;
      this.#endings.look();
    });
  }

  /** A lock was taken from a session by force (EM3 of empty-leases.ts). */
  taken({ lease: id, incarnation }: SessionRef): void {
    this.#empty.look({ id, incarnation });
  }

  holdDelayed(hold: DelayedHold): void {
    this.#delays.began(hold);
  }

  markLeft(mark: MarkedUntil): void {
    this.#marks.left(mark);
  }

  mustHold(command: Command): boolean {
    return this.#registrar.mustHold(command);
  }

  hold(command: Command, go: Go): void {
    this.#registrar.hold(command, go);
  }

  /** RG3 of the registrar: called before a command is proposed that notifies this range of the end of a lease. */
  endTold(id: bigint): void {
    this.#registrar.void(id);
  }

  /**
   * Answers a caller that ended a lease: only once nothing is left of the lease in any range, and with a revision for
   * which that is true (ER1). The same holds for a caller under another request id whose answer is that there is no
   * such lease.
   */
  answerRevoke(id: bigint, answer: RangeReply | ServiceError, done: RevokeDone): void {
    const isRefused = answer instanceof ServiceError;
    if (isRefused && answer.code !== 'LEASE_NOT_FOUND') return done(answer, undefined);
    if (!isRefused && this.#endRevision.isWhole(id, answer.revision)) return done(undefined, answer);
    this.#endings.whenGone(id, (unknown) => {
      if (unknown !== undefined) done(unknown, undefined);
      else if (isRefused) done(answer, undefined);
      else this.#endRevision.answer(answer, done);
    });
  }
}
