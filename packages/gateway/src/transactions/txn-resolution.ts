import { keyAfter, ServiceError, type Span, spanContains } from '@remora/base';
import type { PartResult, RangeReply, TxnCommit, TxnDecide, TxnResolution, TxnState } from '@remora/protocol';
import { eachOf } from '../routing/calls/each-of.ts';
import { RangeCalls, type RangeCallsDeps } from '../routing/calls/range-calls.ts';

/** One attempt at a transaction, as ranges know it. */
export interface TxnName {
  readonly txnId: string;
  /** Of the client's request. */
  readonly requestId: string;
  readonly primaryKey: Uint8Array;
}

/** A part that may be prepared, by its number. */
export interface Place {
  readonly part: number;
  readonly span: Span;
}

/** How long it is tried. What is left then is found by the ranges themselves. */
const SETTLE_MS = 10_000;
const PARTS_AT_A_TIME = 8;

/**
 * Tells ranges what became of a transaction: on behalf of its coordinator, also when nobody waits for an answer any more.
 *
 * SE1. Parts are addressed by their keys, piece by piece where a range was split since. That of the primary, too: what
 *      the record's range has of it is settled with the decision, but a half that left is not.
 * SE2. A committed record is dropped only when every piece is known to be resolved: until then it tells whoever finds an
 *      intent what became of it.
 * SE3. It ends by itself, and what it could not reach is settled by the ranges when the transaction has expired.
 * SE4. Once a decision was sent, parts are aborted only when the record says that it did not commit: a range releases a part
 *      without asking, so an answer taken for a refusal would leave the transaction done in one range and undone in others.
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
   * Resolves what is committed, but for the piece beside the record, and drops the record. Gives the results of these
   * pieces; undefined if some are not remembered.
   */
  commit(txn: TxnName, places: readonly Place[], commit: TxnCommit): Promise<readonly PartResult[] | undefined> {
    return this.#within(async (calls) => {
      const results = await this.#resolveAll(calls, txn, await othersOf(calls, txn, places), commit);
      void this.#within((later) => forget(later, txn)).catch(ignored);
      return results;
    });
  }

  /** The results of a transaction that committed some time ago, if all of them are remembered. */
  recall(txn: TxnName, places: readonly Place[], commit: TxnCommit): Promise<readonly PartResult[] | undefined> {
    return this.#within((calls) => this.#resolveAll(calls, txn, places, commit));
  }

  /** Ends an attempt that will not commit. */
  async abort(txn: TxnName, places: readonly Place[]): Promise<void> {
    await Promise.all([this.end(txn), this.#abortParts(txn, places)]).catch(ignored); // SE3
  }

  /** Ends an attempt whose decision was refused (SE4). */
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

  /** Ends an attempt of another coordinator in its record, unless it has committed: gives with what. */
  async end(txn: TxnName): Promise<TxnCommit | undefined> {
    const state = await this.#decide(txn, { type: 'abort' });
    return state.state === 'committed' ? state.commit : undefined;
  }

  /** Has a transaction aborted in its record if it has expired, and tells how it stands. */
  push(txn: TxnName): Promise<TxnState> {
    return this.#decide(txn, { type: 'push' });
  }

  /** One part, wherever its keys are by now. */
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
      return await work(new RangeCalls(this.#deps, over.signal, clock.monotonicMs() + SETTLE_MS));
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
export const UNNAMED = { requestId: '', deadlineMs: undefined } as const;

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

/** SE1. What each range says that has a piece. */
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
