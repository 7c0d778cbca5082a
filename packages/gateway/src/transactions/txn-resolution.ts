import { keyAfter, ServiceError, type Span, spanContains } from '@remora/base';
import type { PartResult, RangeReply, TxnCommit, TxnDecide, TxnResolution, TxnState } from '@remora/protocol';
import { CLUSTER } from '../authorisation/clearance.ts';
import { eachOf } from '../routing/calls/each-of.ts';
import { RangeCalls, type RangeCallsDeps } from '../routing/calls/range-calls.ts';

/** One attempt at a transaction, as ranges know it. */
export interface TxnName {
  readonly txnId: string;
  /** The client's request id. */
  readonly requestId: string;
  readonly primaryKey: Uint8Array;
}

/** A part that may be prepared, by its number. */
export interface Place {
  readonly part: number;
  readonly span: Span;
}

/** How long a resolution is retried. Ranges resolve what remains after that by themselves. */
const SETTLE_MS = 10_000;
const PARTS_AT_A_TIME = 8;

/**
 * Resolves the parts of a transaction in the ranges that have them, even after its client has the answer.
 *
 * SE1. Parts are addressed by their keys, piece by piece if a range has been split since. That holds for the primary's
 *      part, too: the decision resolves the piece beside the record, but not a piece that a split has moved away.
 * SE2. A committed record is removed only when every piece is known to be resolved: until then, it tells every
 *      transaction that finds an intent how this one ended.
 * SE3. A resolution ends in bounded time. Ranges resolve the rest when the transaction has expired.
 * SE4. Once a decision was sent, parts are aborted only if the record says that the transaction did not commit: a range
 *      releases a part without a check, so an answer mistaken for a refusal would leave the transaction done in one
 *      range and undone in others.
 */
export class TransactionResolution {
  readonly #deps: RangeCallsDeps;
  #inFlight = 0;

  constructor(deps: RangeCallsDeps) {
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Resolves a committed transaction, except for the piece beside the record, and removes the record. Resolves with the
   * results of these pieces; undefined if some are not remembered.
   */
  commit(txn: TxnName, places: readonly Place[], commit: TxnCommit): Promise<readonly PartResult[] | undefined> {
    return this.#within(async (calls) => {
      const results = await this.#resolveAll(calls, txn, await othersOf(calls, txn, places), commit);
      void this.#within((later) => forget(later, txn)).catch(ignored);
      return results;
    });
  }

  /** Resolves with the results of a transaction that committed earlier, if all of them are remembered. */
  recall(txn: TxnName, places: readonly Place[], commit: TxnCommit): Promise<readonly PartResult[] | undefined> {
    return this.#within((calls) => this.#resolveAll(calls, txn, places, commit));
  }

  /** Aborts an attempt that will not commit. */
  async abort(txn: TxnName, places: readonly Place[]): Promise<void> {
    await Promise.all([this.end(txn), this.#abortParts(txn, places)]).catch(ignored); // SE3
  }

  /** Aborts an attempt whose decision was refused (SE4). */
  async abandon(txn: TxnName, places: readonly Place[]): Promise<void> {
    try {
      const commit = await this.end(txn);
      if (commit === undefined) await this.#abortParts(txn, places);
      else await this.commit(txn, places, commit);
    } catch {
      // SE3
    }
  }

  #abortParts(txn: TxnName, places: readonly Place[]): Promise<unknown> {
    return this.#within(async (calls) =>
      this.#resolveAll(calls, txn, await othersOf(calls, txn, places), { type: 'abort' }),
    );
  }

  /** Aborts an attempt of another coordinator in its record. If it has committed, resolves with its commit. */
  async end(txn: TxnName): Promise<TxnCommit | undefined> {
    const state = await this.#decide(txn, { type: 'abort' });
    return state.state === 'committed' ? state.commit : undefined;
  }

  /** Aborts a transaction in its record if it has expired. Resolves with its state. */
  push(txn: TxnName): Promise<TxnState> {
    return this.#decide(txn, { type: 'push' });
  }

  /** Resolves one part, in the ranges that have its keys now. */
  async resolve(txn: Omit<TxnName, 'primaryKey'>, place: Place, resolution: TxnResolution): Promise<void> {
    await this.#within((calls) => resolve(calls, txn, place, resolution));
  }

  #decide(txn: TxnName, decision: Exclude<TxnDecide['decision'], TxnCommit>): Promise<TxnState> {
    const { txnId, requestId, primaryKey } = txn;
    const build = () => ({ type: 'txnDecide', txnId, primaryKey, requestId, decision }) as const;
    return this.#within(async (calls) => {
      const { result } = await calls.execute(build, at(primaryKey), UNNAMED);
      if (result.type === 'txnDecide') return result.outcome;
      throw new ServiceError('INTERNAL', `a range answered a decision with ${result.type}`);
    });
  }

  async #within<Result>(work: (calls: RangeCalls) => Promise<Result>): Promise<Result> {
    const { clock } = this.#deps;
    const over = new AbortController();
    const timer = clock.setTimer(SETTLE_MS, () =>
      over.abort(new ServiceError('DEADLINE_EXCEEDED', 'not all parts were resolved in time')),
    );
    this.#inFlight++;
    try {
      return await work(new RangeCalls(this.#deps, over.signal, clock.monotonicMs() + SETTLE_MS, CLUSTER));
    } finally {
      this.#inFlight--;
      timer.cancel();
      over.abort(new ServiceError('CANCELED', 'the request has ended'));
    }
  }

  async #resolveAll(
    calls: RangeCalls,
    txn: TxnName,
    places: readonly Place[],
    resolution: TxnResolution,
  ): Promise<readonly PartResult[] | undefined> {
    const found: PartResult[] = [];
    let complete = true;
    await eachOf(places, PARTS_AT_A_TIME, async ({ part, span }) => {
      for (const { result } of await resolve(calls, txn, { part, span }, resolution)) {
        if (result.type !== 'txnResolve')
          throw new ServiceError('INTERNAL', `a range answered a resolve with ${result.type}`);
        complete &&= result.results !== undefined;
        found.push(...(result.results ?? []));
      }
    });
    return complete ? found : undefined;
  }
}

/** Commands that may be applied more than once. */
const UNNAMED = { requestId: '', deadlineMs: undefined } as const;

/** One key as a span. */
export function at(key: Uint8Array): Span {
  return { start: key, end: keyAfter(key) };
}

/** SE1. */
async function othersOf(calls: RangeCalls, { primaryKey }: TxnName, places: readonly Place[]): Promise<Place[]> {
  const others: Place[] = [];
  for (const { part, span } of places) {
    if (!spanContains(span, primaryKey)) others.push({ part, span });
    else {
      const pieces = await calls.routesOf(span);
      others.push(
        ...pieces.filter((piece) => !spanContains(piece, primaryKey)).map((piece) => ({ part, span: piece })),
      );
    }
  }
  return others;
}

/** SE1. The answers of all ranges that have a piece. */
async function resolve(
  calls: RangeCalls,
  txn: Omit<TxnName, 'primaryKey'>,
  { part, span }: Place,
  resolution: TxnResolution,
): Promise<readonly RangeReply[]> {
  const { txnId, requestId } = txn;
  const replies: RangeReply[] = [];
  for (const { start, end } of await calls.routesOf(span)) {
    const piece = { start, end };
    try {
      const build = () => ({ type: 'txnResolve', txnId, part, span: piece, requestId, resolution }) as const;
      replies.push(await calls.execute(build, piece, UNNAMED));
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'STALE_EPOCH') throw error;
      await calls.pause();
      replies.push(...(await resolve(calls, txn, { part, span: piece }, resolution)));
    }
  }
  return replies;
}

/** SE2. */
async function forget(calls: RangeCalls, { txnId, primaryKey }: TxnName): Promise<void> {
  await calls.execute(() => ({ type: 'txnForget', txnId, primaryKey }), at(primaryKey), UNNAMED);
}

function ignored(): void {}
