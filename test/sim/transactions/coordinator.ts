/** A coordinator that follows decision 19 literally, and may stop before or after every message. */
import { type ServiceError, type Span, unreachable } from '@remora/base';
import {
  type Compare,
  kvRoutingKey,
  type PartOp,
  type PartResult,
  prepareRequestId,
  type TxnCommit,
  type TxnDecide,
  type TxnPrepareResult,
} from '@remora/protocol';
import type { Calls } from './calls.ts';

/**
 * A transaction that executes branch 0 if all comparisons hold, and otherwise branch 1. The transaction nested in
 * branch 0 has no comparisons: its branch 2 is always executed, and its branch 3 never is.
 */
export interface FlatTxn {
  readonly requestId: string;
  readonly compares: readonly { readonly key: string; readonly compare: Compare }[];
  readonly ops: readonly { readonly key: string; readonly op: PartOp }[];
  /** The request's deadlines, in the time of each range. The same in each attempt. */
  readonly deadlineMs: ReadonlyMap<number, number>;
}

export type Ended =
  /** `results`: undefined if some of them are unknown. */
  | { readonly type: 'committed'; readonly commit: TxnCommit; readonly results: readonly PartResult[] | undefined }
  /** It did not commit, and never will. */
  | { readonly type: 'conflict' }
  | { readonly type: 'failed'; readonly error: ServiceError };

interface Part {
  readonly part: number;
  readonly rangeId: number;
  readonly compares: readonly Compare[];
  readonly ops: readonly PartOp[];
  readonly span: Span;
}

type Prepared = Extract<TxnPrepareResult, { answer: 'prepared' }>;

export class SimCoordinator {
  readonly #calls: Calls;
  readonly #txnId: string;
  readonly #txn: FlatTxn;
  readonly #parts: readonly Part[];
  readonly #expiresMs: number;
  readonly #alive: () => boolean;

  /** `alive` is called at every step. */
  constructor(
    calls: Calls,
    given: {
      readonly txnId: string;
      readonly txn: FlatTxn;
      readonly expiresMs: number;
      readonly alive: () => boolean;
    },
  ) {
    this.#calls = calls;
    this.#txnId = given.txnId;
    this.#txn = given.txn;
    this.#expiresMs = given.expiresMs;
    this.#alive = given.alive;
    this.#parts = partsOf(calls, given.txn);
  }

  get #primaryKey(): Uint8Array {
    return this.#parts[0]?.span.start ?? Buffer.alloc(0);
  }

  async run(): Promise<Ended> {
    const prepared: Prepared[] = [];
    for (const part of this.#parts) {
      const answer = await this.#prepare(part);
      if (answer instanceof Error) return this.#abort({ type: 'failed', error: answer });
      if (answer.answer === 'prepared') prepared.push(answer);
      else return this.#abort(this.#unprepared(answer));
    }
    const floor = Math.max(...prepared.map((one) => one.floor));
    let revision: number | undefined;
    while (revision === undefined) {
      revision = await this.#calls.draw(floor);
      await this.#step();
    }
    const holds = prepared.every(({ compares }) => compares.every((answer) => answer === 'holds'));
    return this.#commit({ type: 'commit', revision, branches: holds ? [0, 2] : [1] });
  }

  /** Never settles once the coordinator has stopped. */
  #step(): Promise<void> {
    return this.#alive() ? Promise.resolve() : new Promise(() => {});
  }

  async #prepare({ part, rangeId, compares, ops }: Part): Promise<TxnPrepareResult | ServiceError> {
    await this.#step();
    const { requestId, deadlineMs } = this.#txn;
    const expiresMs = this.#calls.timeMs(rangeId) + this.#expiresMs;
    const names = { txnId: this.#txnId, part, requestId, primaryKey: this.#primaryKey };
    const answer = await this.#calls.command(
      rangeId,
      { type: 'txnPrepare', ...names, expiresMs, compares, ops },
      { requestId: prepareRequestId(this.#txnId, part), ...deadlineOf(deadlineMs, rangeId) },
      this.#alive,
    );
    await this.#step();
    if (answer instanceof Error) return answer;
    if (answer.result.type !== 'txnPrepare') throw new Error(`a prepare was answered with ${answer.result.type}`);
    return answer.result;
  }

  #unprepared(answer: Exclude<TxnPrepareResult, Prepared>): Ended {
    switch (answer.answer) {
      case 'conflict':
      case 'aborted':
        return { type: 'conflict' };
      case 'remembered': {
        const { result } = answer;
        if (result.type !== 'txnPart') throw new Error(`a ${result.type} is remembered of a transaction`);
        return { type: 'committed', commit: result.commit, results: undefined };
      }
      default:
        return unreachable(answer);
    }
  }

  async #commit(commit: TxnCommit): Promise<Ended> {
    await this.#step();
    const others = this.#parts.slice(1).map(({ span }) => span);
    const decided = await this.#decide({ ...commit, others });
    if (decided instanceof Error) return this.#abort({ type: 'failed', error: decided });
    if (decided.outcome.state !== 'committed') return this.#abort({ type: 'conflict' });
    const results: (readonly PartResult[] | undefined)[] = [decided.results];
    for (const part of this.#parts.slice(1)) results.push(await this.#resolve(part, commit));
    await this.#step();
    void this.#calls.command(this.#rangeId(0), this.#forget(), {}, this.#alive);
    const known = results.flatMap((one) => one ?? []);
    return { type: 'committed', commit, results: results.includes(undefined) ? undefined : known };
  }

  async #decide(decision: TxnDecide['decision']) {
    const names = { txnId: this.#txnId, primaryKey: this.#primaryKey, requestId: this.#txn.requestId };
    const answer = await this.#calls.command(
      this.#rangeId(0),
      { type: 'txnDecide', ...names, decision },
      {},
      this.#alive,
    );
    await this.#step();
    if (answer instanceof Error) return answer;
    if (answer.result.type !== 'txnDecide') throw new Error(`a decision was answered with ${answer.result.type}`);
    return answer.result;
  }

  async #resolve({ part, rangeId, span }: Part, resolution: TxnCommit | { readonly type: 'abort' }) {
    await this.#step();
    const names = { txnId: this.#txnId, part, span, requestId: this.#txn.requestId };
    const answer = await this.#calls.command(rangeId, { type: 'txnResolve', ...names, resolution }, {}, this.#alive);
    if (answer instanceof Error) throw answer;
    return answer.result.type === 'txnResolve' ? answer.result.results : undefined;
  }

  /** Ends everything that was begun before it reports the outcome. */
  async #abort(ended: Ended): Promise<Ended> {
    await this.#decide({ type: 'abort' });
    for (const part of this.#parts.slice(1)) await this.#resolve(part, { type: 'abort' });
    return ended;
  }

  #forget() {
    return { type: 'txnForget', txnId: this.#txnId, primaryKey: this.#primaryKey } as const;
  }

  #rangeId(part: number): number {
    return this.#parts[part]?.rangeId ?? 0;
  }
}

function deadlineOf(deadlines: ReadonlyMap<number, number>, rangeId: number): { readonly deadlineMs?: number } {
  const deadlineMs = deadlines.get(rangeId);
  return deadlineMs === undefined ? {} : { deadlineMs };
}

/** One part for each range, in the order in which the keys are named. */
function partsOf(calls: Calls, { compares, ops }: FlatTxn): readonly Part[] {
  const ids = [...new Set([...compares, ...ops].map(({ key }) => calls.rangeOf(key)))];
  return ids.map((rangeId, part) => {
    const mine = <T extends { readonly key: string }>(all: readonly T[]): readonly T[] =>
      all.filter(({ key }) => calls.rangeOf(key) === rangeId);
    const keys = [...mine(compares), ...mine(ops)]
      .map(({ key }) => kvRoutingKey(Buffer.from(key)))
      .sort(Buffer.compare);
    const [first = Buffer.alloc(0)] = keys;
    const last = keys.at(-1) ?? first;
    return {
      ...{ part, rangeId },
      compares: mine(compares).map(({ compare }) => compare),
      ops: mine(ops).map(({ op }) => op),
      span: { start: first, end: Buffer.concat([last, Buffer.from([0])]) },
    };
  });
}
