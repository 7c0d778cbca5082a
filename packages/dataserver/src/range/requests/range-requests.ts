import type { ServiceError } from '@remora/base';
import { type Command, type RangeRequest, staleAuth } from '@remora/protocol';
import type { SplitReasons } from '../../splitting/split-reasons.ts';
import { commandWithin } from '../../state/request-bounds.ts';
import type { LeaseManager } from '../leases/lease-manager.ts';
import type { OnCancel } from '../range-options.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { Merges } from '../reshape/merges.ts';
import type { SplitBackpressure } from '../reshape/split-backpressure.ts';
import { readBytes } from '../stats/range-report.ts';
import type { ClosedRevisions } from './closed-revisions.ts';
import type { Commands, RangeDone } from './commands.ts';
import { commandBytes } from './proposals.ts';
import type { AskedQuery, Queries } from './queries.ts';

interface RangeRequestsDeps {
  readonly context: ReplicaContext;
  readonly merges: Merges;
  readonly commands: Commands;
  readonly queries: Queries;
  readonly closing: ClosedRevisions;
  readonly leases: LeaseManager;
  readonly splitReasons: SplitReasons;
  readonly backpressure: SplitBackpressure;
  /** The revision of users and roles that this node knows; 0: none. */
  readonly authRevision: () => number;
}

/** The waits that a command may already have passed, in their order (RE2). */
const PASSED = { nothing: 0, compaction: 1, backpressure: 2, leases: 3 } as const;
type Passed = (typeof PASSED)[keyof typeof PASSED];

/**
 * The way of a request through a replica: held while the range is sealed, then answered (a query), or proposed and
 * answered when it is applied (a command).
 *
 * RE1. The routing of a request, by its epoch and its keys, is checked once, and again after each wait: the range may
 *      have been split or merged meanwhile.
 * RE2. A command waits for at most one thing of each kind, in the order of `PASSED`, and only at a leader that serves
 *      the range. Without a wait it goes from `execute` to the log in one call.
 * RE3. A request that a gateway has allowed by an older revision of users and roles than this node knows is not
 *      executed, and a command not proposed after a wait either: the gateway decides again. A command of which the
 *      outcome is remembered is answered with it, even if its sender has lost the permission.
 */
export class RangeRequests {
  readonly #deps: RangeRequestsDeps;

  constructor(deps: RangeRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Executes a request; `done` is called exactly once. `passed`: the waits that are over, when the request returns
   * after one.
   */
  execute(request: RangeRequest, onCancel: OnCancel, done: RangeDone, passed: Passed = PASSED.nothing): void {
    const { context, commands, leases, splitReasons } = this.#deps;
    if (passed === PASSED.nothing && this.#isHeld(request, onCancel, done)) return;
    const { body, epoch, authRevision } = request;
    const isStaleAuth = authRevision !== 0 && authRevision < this.#deps.authRevision(); // RE3
    if (body.kind === 'query') {
      if (isStaleAuth) return done(staleAuth(this.#deps.authRevision(), false), undefined);
      const { query, notBefore } = body;
      return this.#query(request, { query, epoch, notBefore }, onCancel, done);
    }
    const { command } = body;
    if (body.kind === 'recall' || isStaleAuth) {
      return commands.recall(request, command, this.#deps.authRevision(), done);
    }
    const isMisrouted = context.isStale(epoch) || !commandWithin(context.state.bounds, command); // RE1
    if (context.serving && !isMisrouted && this.#waits(request, command, done, passed)) return;
    if (splitReasons.watching) splitReasons.asked(request, commandBytes(command));
    if (command.type === 'leaseEnd') leases.endTold(command.id);
    if (isMisrouted) commands.executeMisrouted(request, command, done);
    else commands.execute(request, command, done);
  }

  /** Whether the request waits until the range is unsealed, or merged (merges.ts MR7). */
  #isHeld(request: RangeRequest, onCancel: OnCancel, done: RangeDone): boolean {
    const { context, merges } = this.#deps;
    if (!context.serving || context.sealed === undefined) return false;
    const again = (): void => this.execute(request, onCancel, done);
    return merges.holds({ again, refuse: (error) => done(error, undefined) });
  }

  /** RE2. Whether the command waits for something now; after that it returns to `execute`, or is refused. */
  #waits(request: RangeRequest, command: Command, done: RangeDone, passed: Passed): boolean {
    const { closing, backpressure, leases } = this.#deps;
    // A compaction may move the range on to a revision that it has not reached (CL5 of closed-revisions.ts).
    if (passed < PASSED.compaction && command.type === 'compact' && !closing.isGiven(command.revision)) {
      closing.whenGiven(command.revision, this.#after(PASSED.compaction, request, done));
      return true;
    }
    // A write to a range that is too large waits until the range is split.
    if (passed < PASSED.backpressure && backpressure.slows(command)) {
      const after = this.#after(PASSED.backpressure, request, done);
      backpressure.hold({ go: () => after(undefined), refuse: after });
      return true;
    }
    // A command with a lease of another range waits until the lease is registered there.
    if (passed < PASSED.leases && leases.mustHold(command)) {
      leases.hold(command, this.#after(PASSED.leases, request, done));
      return true;
    }
    return false;
  }

  #after(passed: Passed, request: RangeRequest, done: RangeDone): (error: ServiceError | undefined) => void {
    return (error) => {
      if (error === undefined) this.execute(request, NEVER_CANCELLED, done, passed);
      else done(error, undefined);
    };
  }

  #query(request: RangeRequest, asked: AskedQuery, onCancel: OnCancel, done: RangeDone): void {
    const { context, queries, splitReasons } = this.#deps;
    queries.execute(asked, onCancel, (error, result, revision) => {
      if (result === undefined) return done(error, undefined);
      const bytes = readBytes(result);
      context.load.read(request, bytes);
      if (splitReasons.watching) splitReasons.asked(request, bytes);
      done(undefined, context.reply(result, revision));
    });
  }
}

/** Commands are not cancelled: once proposed they are applied. */
const NEVER_CANCELLED: OnCancel = () => {};
