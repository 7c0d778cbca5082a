import { assert, ServiceError } from '@remora/base';
import {
  type CommandResult,
  type OpFailure,
  type PartResult,
  prepareRequestId,
  type RangeReply,
  type TxnCommit,
  type TxnHolder,
  type TxnPartOutcome,
  type TxnPrepare,
  type TxnPrepareResult,
} from '@remora/protocol';
import { CLUSTER } from '../authorisation/clearance.ts';
import type { BackendReply } from '../backend.ts';
import { eachOf } from '../routing/calls/each-of.ts';
import type { NewestRevision } from '../routing/calls/newest-revision.ts';
import type { CommandIdentity, RangeCalls } from '../routing/calls/range-calls.ts';
import { outcomes, type Part } from './parts.ts';
import type { TxnPlan } from './plan.ts';
import { at, type Place, type TransactionResolution, type TxnName } from './txn-resolution.ts';

export interface TxnRevisions {
  /** Draws revisions that the master issues to no other caller. */
  readonly unique: NewestRevision;
  /** Draws the newest revision. */
  readonly newest: NewestRevision;
}

export interface AttemptDeps {
  readonly calls: RangeCalls;
  readonly revisions: TxnRevisions;
  readonly resolution: TransactionResolution;
}

/** How an attempt ended. */
export type Attempted =
  | {
      readonly type: 'committed';
      readonly commit: TxnCommit;
      /** The results of the primary's part; undefined if its range does not remember them. */
      readonly results: readonly PartResult[] | undefined;
      readonly raftTerm: number;
    }
  /** An earlier attempt at the same request was applied: in one range, … */
  | { readonly type: 'done'; readonly reply: BackendReply<CommandResult> }
  /** … or in several. */
  | {
      readonly type: 'remembered';
      readonly outcome: Pick<TxnPartOutcome, 'txnId' | 'commit'>;
      readonly raftTerm: number;
    }
  /**
   * Nothing was changed, and nothing remains of the attempt: another transaction was in the way, or ranges were split
   * or merged.
   */
  | { readonly type: 'conflict' }
  | { readonly type: 'rerouted' };

type Prepared = Extract<TxnPrepareResult, { answer: 'prepared' }>;

/**
 * From the first prepare on: longer than an election takes. Intents of a coordinator that has failed remain that long.
 */
const EXPIRES_MS = 3_000;
const PARTS_AT_A_TIME = 8;

/**
 * One attempt at a transaction over several ranges, from the first prepare to the decision (decision 19).
 *
 * AT1. The primary's part is prepared and answered before another is sent (T1), and the revision is drawn when all are
 *      prepared, above their floors (T4). A transaction that changes nothing uses no revision up: it returns the state
 *      at the newest one, which its answer carries.
 * AT2. It commits only what all parts were prepared for, under the outcome of all comparisons together. If an operation
 *      of an executed branch cannot be executed, the transaction fails with its error.
 * AT3. An attempt that does not commit is aborted before the next one starts: in its record, and in every range to
 *      which a prepare was sent.
 * AT4. Once the decision is sent, the attempt has failed only if the range says so; otherwise its outcome is unknown.
 *      The call that sends the decision knows whether it was sent, so the end of the request does not cut that call
 *      short.
 * AT5. A failure is not remembered, so it says nothing about other attempts at the request: an attempt that another
 *      gateway makes for the same client may be late, and may still commit. The error says so (`unremembered`).
 * AT6. All parts are prepared by permission of the client. A part whose range knows newer users and roles is prepared
 *      after the whole transaction was decided about again. Then the decision is the cluster's own: what is prepared
 *      ends, whatever permissions have changed by then.
 */
export class Attempt {
  readonly #deps: AttemptDeps;
  readonly #plan: TxnPlan;
  readonly #parts: readonly Part[];
  readonly #txn: TxnName;
  readonly #identity: CommandIdentity;
  /** Parts that may be prepared. */
  readonly #sent = new Map<number, Place>();
  #raftTerm = 0;

  constructor(
    deps: AttemptDeps,
    what: {
      readonly plan: TxnPlan;
      readonly parts: readonly Part[];
      readonly txnId: string;
      readonly identity: CommandIdentity;
    },
  ) {
    const { plan, parts, txnId, identity } = what;
    this.#deps = deps;
    this.#plan = plan;
    this.#parts = parts;
    this.#identity = identity;
    this.#txn = { txnId, requestId: identity.requestId, primaryKey: plan.primaryKey };
  }

  async run(): Promise<Attempted> {
    let commit: TxnCommit;
    try {
      commit = await this.#prepareAll();
    } catch (error) {
      const aborted = this.#abort(); // AT3
      if (error instanceof NotPrepared) {
        await this.#deps.calls.during(aborted);
        return this.#notPrepared(error.answer);
      }
      const code = error instanceof ServiceError ? error.code : undefined;
      // Too late for this attempt, which may have been delayed; the request itself ends by its time-out.
      if (code !== 'STALE_EPOCH' && code !== 'DEADLINE_EXCEEDED') throw unremembered(notApplied(error));
      await this.#deps.calls.during(aborted);
      return { type: code === 'STALE_EPOCH' ? 'rerouted' : 'conflict' };
    }
    return this.#decide(commit);
  }

  // -------------------------------------------------------------------------------------------- preparing

  /** Resolves with what the attempt may commit with. */
  async #prepareAll(): Promise<TxnCommit> {
    const prepared: Prepared[] = [];
    prepared[0] = await this.#prepare(0); // AT1
    const others = this.#parts.map((_, part) => part).slice(1);
    await eachOf(others, PARTS_AT_A_TIME, async (part) => {
      prepared[part] = await this.#prepare(part);
    });
    const { calls, revisions } = this.#deps;
    const floor = prepared.reduce((highest, one) => Math.max(highest, one.floor), 0);
    const branches = this.#plan.branches(this.#compared(prepared));
    const failure = firstFailure(prepared, branches);
    if (failure !== undefined) throw failure;
    const source = changesAny(prepared, branches) ? revisions.unique : revisions.newest;
    const revision = await source.draw(floor, calls.signal); // AT1
    return { type: 'commit', revision, branches };
  }

  async #prepare(number: number): Promise<Prepared> {
    const { txnId } = this.#txn;
    const part = this.#parts[number];
    assert(part !== undefined, 'a part has a number');
    const { span, compares, ops } = part;
    const build = (deadlineMs: number, nowMs: number): TxnPrepare => ({
      ...{ type: 'txnPrepare', ...this.#txn, part: number, compares, ops },
      expiresMs: Math.min(deadlineMs, nowMs + EXPIRES_MS),
    });
    this.#sent.set(number, { part: number, span });
    const { deadlineMs } = this.#identity;
    const requestId = prepareRequestId(txnId, number);
    const reply = await this.#deps.calls.execute(build, span, { requestId, deadlineMs });
    this.#raftTerm = Math.max(this.#raftTerm, reply.raftTerm);
    const { result } = reply;
    if (result.type !== 'txnPrepare') throw unexpected(reply);
    if (result.answer === 'prepared') return result;
    // It never will be: the range remembers this answer.
    this.#sent.delete(number);
    throw new NotPrepared(result);
  }

  /** AT2. */
  #compared(prepared: readonly Prepared[]): readonly boolean[] {
    const answers = this.#parts.map(({ compareNumbers }, part) => ({
      numbers: compareNumbers,
      compares: prepared[part]?.compares ?? [],
    }));
    return outcomes(this.#plan.compares, answers);
  }

  async #notPrepared(answer: NotPrepared['answer']): Promise<Attempted> {
    switch (answer.answer) {
      case 'aborted':
        return { type: 'conflict' };
      case 'remembered': {
        const { result, revision } = answer;
        const raftTerm = this.#raftTerm;
        if (result.type === 'txnPart') return { type: 'remembered', outcome: result, raftTerm };
        return { type: 'done', reply: { result, revision, raftTerm } };
      }
      case 'conflict': {
        const own = answer.holders.find(({ requestId }) => requestId === this.#txn.requestId);
        return own === undefined ? { type: 'conflict' } : this.#replaceOther(own);
      }
    }
  }

  /** The client has retried through this gateway: aborts the attempt of another gateway, which is in the way. */
  async #replaceOther(other: TxnHolder): Promise<Attempted> {
    const { calls, resolution } = this.#deps;
    const commit = await calls.during(resolution.end(other));
    if (commit === undefined) return { type: 'conflict' };
    return { type: 'remembered', outcome: { txnId: other.txnId, commit }, raftTerm: this.#raftTerm };
  }

  #abort(): Promise<void> {
    return this.#sent.size === 0 ? Promise.resolve() : this.#deps.resolution.abort(this.#txn, [...this.#sent.values()]);
  }

  // -------------------------------------------------------------------------------------------- deciding

  async #decide(commit: TxnCommit): Promise<Attempted> {
    const { txnId, requestId, primaryKey } = this.#txn;
    const { deadlineMs } = this.#identity;
    const others = this.#parts.slice(1).map(({ span }) => span);
    const decision = { ...commit, others };
    const build = () => ({ type: 'txnDecide', txnId, primaryKey, requestId, decision }) as const;
    let reply: RangeReply;
    try {
      const decides = { requestId: `${txnId}/d`, deadlineMs };
      // AT6.
      reply = await this.#deps.calls.executeToEnd(build, at(primaryKey), decides, CLUSTER);
    } catch (error) {
      // It was committed; only the answer is too large.
      if (isLost(error)) return { type: 'committed', commit, results: undefined, raftTerm: this.#raftTerm };
      if (mayBeApplied(error)) throw unknownOutcome(error);
      void this.#deps.resolution.abandon(this.#txn, [...this.#sent.values()]);
      throw unremembered(error);
    }
    const { result } = reply;
    if (result.type !== 'txnDecide') throw unexpected(reply);
    switch (result.outcome.state) {
      case 'committed':
        return { type: 'committed', commit: result.outcome.commit, results: result.results, raftTerm: reply.raftTerm };
      case 'aborted':
        // It had expired, or the client has retried through another gateway.
        await this.#deps.calls.during(this.#abort());
        return { type: 'conflict' };
      case 'pending':
        throw unexpected(reply);
    }
  }
}

/** A part was not prepared, for a reason that is not an error. */
class NotPrepared extends Error {
  override readonly name = 'NotPrepared';
  readonly answer: Exclude<TxnPrepareResult, Prepared>;

  constructor(answer: Exclude<TxnPrepareResult, Prepared>) {
    super(`a part was answered ${answer.answer}`);
    this.answer = answer;
  }
}

/** AT1. */
function changesAny(prepared: readonly Prepared[], branches: readonly number[]): boolean {
  return prepared.some(({ changing }) => changing?.some((branch) => branches.includes(branch)) ?? true);
}

/** AT2. */
function firstFailure(prepared: readonly Prepared[], branches: readonly number[]): ServiceError | undefined {
  const failures = prepared.flatMap((one) => one.failures).filter(({ branch }) => branches.includes(branch));
  const first = failures.reduce<OpFailure | undefined>(
    (lowest, one) => (lowest === undefined || one.number < lowest.number ? one : lowest),
    undefined,
  );
  if (first === undefined) return undefined;
  const { code, message, details } = first;
  return new ServiceError(code, message, details === undefined ? {} : { details });
}

function isLost(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'RESULT_LOST';
}

/** AT4. */
function mayBeApplied(error: unknown): boolean {
  return !(error instanceof ServiceError) || error.code === 'UNKNOWN_OUTCOME';
}

/** Until the decision is sent nothing is changed, even if a prepare was applied. */
function notApplied(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'UNKNOWN_OUTCOME') return error;
  const message = 'not all ranges could prepare the transaction in time; nothing was changed';
  return new ServiceError('DEADLINE_EXCEEDED', message, { cause: error });
}

/** AT5. */
export function unremembered(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code === 'RESULT_LOST') return error;
  const { code, message, details, cause } = error;
  return new ServiceError(code, message, { details: { ...details, unremembered: true }, cause });
}

function unknownOutcome(cause: unknown): ServiceError {
  const message = 'the answer was lost; the transaction may have been applied';
  return new ServiceError('UNKNOWN_OUTCOME', `${message}; retry with the same request id`, { cause });
}

function unexpected({ result }: RangeReply): ServiceError {
  return new ServiceError('INTERNAL', `a range answered a transaction with ${result.type}`);
}
