import { type Random, ServiceError, toServiceError } from '@remora/base';
import type { CommandResult, TxnPartOutcome } from '@remora/protocol';
import type { BackendDone } from '../backend.ts';
import { type DrawNewest, NewestRevision } from '../routing/calls/newest-revision.ts';
import { type CallTerms, type CommandIdentity, RangeCalls, type RangeCallsDeps } from '../routing/calls/range-calls.ts';
import type { TxnRevisions } from './attempt.ts';
import type { KvCommand } from './plan.ts';
import { TxnRequest } from './txn-request.ts';
import { TransactionResolution } from './txn-resolution.ts';

export interface CoordinatorDeps extends RangeCallsDeps {
  readonly random: Random;
  /** Asks the master once for a revision above `floor` that it issues to no other caller. */
  readonly draw: DrawNewest;
  readonly newest: NewestRevision;
  /** Returns a new id, unique in the cluster. */
  readonly newTxnId: () => string;
}

/**
 * Commits transactions whose keys are in several ranges (design §11, decision 19).
 *
 * CT1. A request is applied once: all its attempts carry its id, a range that remembers the id returns the outcome, and
 *      an attempt starts only when the one before is known not to commit.
 * CT2. A request that times out before the decision was sent changes nothing, and its error says so, even if the
 *      decision waited for a leader of its range. Once the decision was sent, the outcome is unknown, never failed.
 *      What was prepared is resolved in the background.
 * CT3. The client is answered when the decision is durable, as soon as all results are known.
 */
export class Coordinator {
  readonly #deps: CoordinatorDeps;
  readonly #revisions: TxnRevisions;
  readonly #resolution: TransactionResolution;
  #requests = 0;

  constructor(deps: CoordinatorDeps) {
    this.#deps = deps;
    const { newest } = deps;
    this.#revisions = { newest, unique: new NewestRevision({ ...deps, newest: deps.draw }) };
    this.#resolution = new TransactionResolution(deps);
  }

  /**
   * The number of requests, answered or not, that may have parts prepared in ranges, and of resolutions in progress. If
   * the coordinator ends while there are any, keys stay locked until the transactions have expired.
   */
  get inFlight(): number {
    return this.#requests + this.#resolution.inFlight;
  }

  /**
   * Returns a function that ends the interest in the answer; the command continues. `earlier`: the outcome that a range
   * remembers of an earlier attempt, which was applied.
   */
  command(
    command: KvCommand,
    options: CommandIdentity & CallTerms,
    done: BackendDone<CommandResult>,
    earlier: TxnPartOutcome | undefined,
  ): () => void {
    const { clock } = this.#deps;
    const { timeoutMs, clearance, ...identity } = options;
    const over = new AbortController();
    const timer = clock.setTimer(timeoutMs, () => over.abort(tooLate()));
    const calls = new RangeCalls(this.#deps, over.signal, clock.monotonicMs() + timeoutMs, clearance);
    let canceled = false;
    this.#requests++;
    const end: BackendDone<CommandResult> = (error, reply) => {
      this.#requests--;
      timer.cancel();
      over.abort(tooLate()); // other parts may still be in flight after one has failed
      if (!canceled) done(error, reply);
    };
    const { random, newTxnId } = this.#deps;
    const means = { calls, random, newTxnId, revisions: this.#revisions, resolution: this.#resolution };
    const request = new TxnRequest(means, command, identity);
    const answered = earlier === undefined ? request.run() : request.recall(earlier, 0);
    answered.then(
      (reply) => end(undefined, reply),
      (error: unknown) => end(toServiceError(error), undefined),
    );
    return () => {
      canceled = true;
    };
  }
}

function tooLate(): ServiceError {
  return new ServiceError(
    'DEADLINE_EXCEEDED',
    'the ranges did not prepare the transaction in time; nothing was changed',
  );
}
