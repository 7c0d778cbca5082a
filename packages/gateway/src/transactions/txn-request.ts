import { type Random, ServiceError } from '@remora/base';
import {
  type CommandResult,
  type PartOp,
  type PartResult,
  TXN_PARTS_MAX,
  type TxnCommit,
  type TxnPartOutcome,
} from '@remora/protocol';
import type { BackendReply } from '../backend.ts';
import type { CommandIdentity, RangeCalls } from '../routing/calls/range-calls.ts';
import { Attempt, type Attempted, type TxnRevisions, unremembered } from './attempt.ts';
import { type Part, partsOf } from './parts.ts';
import { type KvCommand, TxnPlan } from './plan.ts';
import { Results, saysNothing } from './results.ts';
import type { Place, TransactionResolution, TxnName } from './txn-resolution.ts';

export interface TxnMeans {
  /** The calls of this request. */
  readonly calls: RangeCalls;
  readonly random: Random;
  readonly revisions: TxnRevisions;
  readonly resolution: TransactionResolution;
  readonly newTxnId: () => string;
}

type Reply = BackendReply<CommandResult>;
type Committed = Extract<Attempted, { type: 'committed' }>;

/** The longest pause after the first conflict with another transaction; later pauses grow. */
const CONFLICT_PAUSE_MIN_MS = 4;
const CONFLICT_PAUSE_MAX_MS = 128;

/** One client's request, from attempt to attempt (coordinator.ts CT1–CT3). */
export class TxnRequest {
  readonly #means: TxnMeans;
  readonly #command: KvCommand;
  readonly #identity: CommandIdentity;
  readonly #plan: TxnPlan;

  constructor(means: TxnMeans, command: KvCommand, identity: CommandIdentity) {
    this.#means = means;
    this.#command = command;
    this.#identity = identity;
    this.#plan = new TxnPlan(command);
  }

  async run(): Promise<Reply> {
    for (let conflicts = 0; ; ) {
      const parts = await this.#parts();
      const txnId = this.#means.newTxnId();
      const attempted = await this.#attempt(parts, txnId);
      switch (attempted.type) {
        case 'committed':
          return this.#committed(parts, txnId, attempted);
        case 'done':
          return attempted.reply;
        case 'remembered':
          return this.recall(attempted.outcome, attempted.raftTerm);
        case 'conflict':
          await this.#means.calls.pause(this.#conflictPauseMs(conflicts++));
          break;
        case 'rerouted':
          await this.#means.calls.pause();
      }
    }
  }

  /** Resolves with the answer to a request that is known to have been applied over several ranges. */
  async recall({ txnId, commit }: Pick<TxnPartOutcome, 'txnId' | 'commit'>, raftTerm: number): Promise<Reply> {
    const { calls, resolution } = this.#means;
    try {
      const places = placesOf(await this.#parts());
      const results = await calls.during(resolution.recall(this.#name(txnId), places, commit));
      return this.#answer(commit, raftTerm, results, this.#plan.ops);
    } catch (error) {
      throw lost(commit, error);
    }
  }

  async #parts(): Promise<readonly Part[]> {
    const parts = await partsOf(this.#plan, (span) => this.#means.calls.routesOf(span));
    if (parts.length <= TXN_PARTS_MAX) return parts;
    const message = `the keys are in ${parts.length} ranges, and one transaction can use ${TXN_PARTS_MAX}; split it into several transactions`;
    throw unremembered(new ServiceError('RESOURCE_EXHAUSTED', message));
  }

  #name(txnId: string): TxnName {
    return { txnId, requestId: this.#identity.requestId, primaryKey: this.#plan.primaryKey };
  }

  #attempt(parts: readonly Part[], txnId: string): Promise<Attempted> {
    const [only, ...others] = parts;
    if (only !== undefined && others.length === 0) return this.#inOneRange(only);
    const identity = this.#identity;
    return new Attempt(this.#means, { plan: this.#plan, parts, txnId, identity }).run();
  }

  /** All keys are in one range by now, after merges. */
  async #inOneRange({ span }: Part): Promise<Attempted> {
    try {
      const reply = await this.#means.calls.executeToEnd(() => this.#command, span, this.#identity);
      const { revision, raftTerm } = reply;
      const result = reply.result as CommandResult;
      return result.type === 'txnPart'
        ? { type: 'remembered', outcome: result, raftTerm }
        : { type: 'done', reply: { result, revision, raftTerm } };
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'STALE_EPOCH') return { type: 'rerouted' };
      throw error;
    }
  }

  #conflictPauseMs(conflicts: number): number {
    const ceiling = Math.min(CONFLICT_PAUSE_MAX_MS, CONFLICT_PAUSE_MIN_MS * 2 ** Math.min(conflicts, 8));
    return 1 + this.#means.random.int(ceiling);
  }

  // -------------------------------------------------------------------------------------------- answers

  /** CT3. */
  async #committed(parts: readonly Part[], txnId: string, committed: Committed): Promise<Reply> {
    const { commit, results, raftTerm } = committed;
    const { calls, resolution } = this.#means;
    const others = resolution.commit(this.#name(txnId), placesOf(parts), commit);
    others.catch(() => {}); // the ranges resolve the rest by themselves
    const pieces = parts.flatMap(({ ops }) => ops);
    try {
      if (await this.#saysNothing(parts, commit)) return this.#answer(commit, raftTerm, results, pieces);
      const more = await calls.during(others);
      const all = results === undefined || more === undefined ? undefined : [...results, ...more];
      return this.#answer(commit, raftTerm, all, pieces);
    } catch (error) {
      throw lost(commit, error);
    }
  }

  /** Whether the results of all operations in other ranges than the record's are known without asking them. */
  async #saysNothing([primary, ...others]: readonly Part[], { branches }: TxnCommit): Promise<boolean> {
    if (primary === undefined || (await this.#means.calls.routesOf(primary.span)).length > 1) return false;
    return others.every(({ ops }) => ops.every(({ branch, op }) => saysNothing(op) || !branches.includes(branch)));
  }

  /** `pieces`: operations that must have a result if they were executed, unless the result is known anyway. */
  #answer(
    commit: TxnCommit,
    raftTerm: number,
    results: readonly PartResult[] | undefined,
    pieces: readonly PartOp[],
  ): Reply {
    if (results === undefined) throw lost(commit, undefined);
    const { revision, branches } = commit;
    const all = new Results(this.#plan);
    all.add(results);
    const isMissing = ({ number, branch, op }: PartOp): boolean =>
      branches.includes(branch) && !saysNothing(op) && !all.has(number, op.key);
    if (pieces.some(isMissing)) throw lost(commit, undefined);
    return { revision, raftTerm, result: this.#plan.answer(branches, (number) => all.of(number)) };
  }
}

function placesOf(parts: readonly Part[]): readonly Place[] {
  return parts.map(({ span }, part) => ({ part, span }));
}

/** The outcome is known, and a retry gets the same one. */
function lost({ revision }: TxnCommit, cause: unknown): ServiceError {
  const message = `the transaction was applied, at revision ${revision}, but not all of its results are known; do not repeat it`;
  return new ServiceError('RESULT_LOST', message, { details: { revision }, cause });
}
