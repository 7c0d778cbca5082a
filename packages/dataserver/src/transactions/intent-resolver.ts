import { type Clock, LazySet, type ServiceError, type Timer } from '@remora/base';
import type { Command, TxnResolution, TxnResolve, TxnState } from '@remora/protocol';
import type { IntentWaitQueue } from './intent-wait-queue.ts';
import { type PreparedPart, spanOfPart, type TxnRecord } from './prepared-part.ts';
import type { RangeTransactions } from './range-transactions.ts';

/** The connection from a range to other ranges, for transactions that coordinators have left unfinished. */
export interface TransactionPeers {
  /** Aborts the record of a transaction if it has expired, and returns the transaction's state. */
  push(txn: Pick<PreparedPart, 'txnId' | 'primaryKey'>, done: (state: TxnState | undefined) => void): void;
  /** Resolves the parts of a transaction in a span; reports no error once all of them are known to be resolved. */
  resolve(command: TxnResolve, done: (error: ServiceError | undefined) => void): void;
}

export interface IntentResolverDeps {
  readonly clock: Clock;
  readonly peers: TransactionPeers;
  readonly waits: IntentWaitQueue;
  /** The current instance: an installed snapshot replaces it. */
  readonly transactions: () => RangeTransactions;
  /** The time of the range, as its leader computes it. */
  readonly rangeTimeMs: () => number;
  /** Whether the replica leads and takes commands. */
  readonly serving: () => boolean;
  /** `done` is called when the command is applied, or never will be. */
  readonly propose: (command: Command, done: () => void) => void;
}

const INTERVAL_MS = 100;
/** The largest number of transactions that are looked up at a time. */
const UNDER_WAY_MAX = 64;

const NONE: ReadonlySet<string> = new Set();

/**
 * Finishes, at the leader of a range, the transactions that coordinators have left (design §11: a request that meets an
 * old intent asks the primary).
 *
 * ST1. A part that has expired, or that a request has waited for since the last look, is looked up at its record and
 *      resolved accordingly. There is no other reason to abort a part: only the record's range knows its time (T3).
 * ST2. A record here that has expired and is not decided is aborted. A committed record is dropped when all its parts
 *      are known to be resolved, wherever they are by now (T7).
 * ST3. A transaction is looked up once at a time. The timer runs only while there are transactions, so a range without
 *      them costs nothing.
 * ST4. If there are more transactions than can be looked up at a time, none is looked up again before all others had
 *      their turn. So transactions whose record or parts are unreachable do not delay others.
 */
export class IntentResolver {
  readonly #deps: IntentResolverDeps;
  /** ST3. */
  readonly #inFlight = new LazySet<string>();
  /** ST4. Transactions that had their turn while others wait for theirs, as far as they still exist. */
  #hadTurn: Set<string> | undefined;
  /** ST4. This look skipped some transactions. */
  #full = false;
  /** The transactions with waiters at the last look. */
  #awaited: ReadonlySet<string> = NONE;
  #timer: Timer | undefined;

  constructor(deps: IntentResolverDeps) {
    this.#deps = deps;
  }

  /** There may be new work: an entry was applied, a request waits, or leadership began. */
  wake(): void {
    const { clock, waits, transactions } = this.#deps;
    if (this.#timer !== undefined || transactions().size + waits.size === 0) return;
    this.#timer = clock.setTimer(INTERVAL_MS, () => {
      this.#timer = undefined;
      if (!this.#deps.serving()) return;
      this.#look();
      this.wake();
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#awaited = NONE;
    this.#hadTurn = undefined;
  }

  #look(): void {
    const { waits, transactions, rangeTimeMs } = this.#deps;
    this.#full = false;
    const nowMs = rangeTimeMs();
    waits.expire(nowMs);
    const awaited = waits.lookAtAwaited();
    for (const part of transactions().parts) {
      const { txnId } = part;
      const due = part.expiresMs < nowMs || (awaited.has(txnId) && this.#awaited.has(txnId));
      if (due) this.#settlePart(part, transactions().record(txnId));
    }
    this.#awaited = awaited;
    for (const record of transactions().records) if (record.expiresMs < nowMs) this.#settleRecord(record);
    this.#hadTurn = this.#full ? this.#stillThere() : undefined;
  }

  #stillThere(): Set<string> {
    const { parts, records } = this.#deps.transactions();
    const there = new Set([...parts, ...records].map(({ txnId }) => txnId));
    return new Set([...(this.#hadTurn ?? [])].filter((txnId) => there.has(txnId)));
  }

  /** ST3, ST4. */
  #begin(txnId: string): (() => void) | undefined {
    if (this.#inFlight.has(txnId) || this.#hadTurn?.has(txnId) === true) return undefined;
    if (this.#inFlight.size >= UNDER_WAY_MAX) {
      this.#full = true;
      return undefined;
    }
    this.#inFlight.add(txnId);
    this.#hadTurn ??= new Set();
    this.#hadTurn.add(txnId);
    return () => this.#inFlight.delete(txnId);
  }

  /** ST1. If the record is here, the record decides (ST2), unless this part came later, in a merge. */
  #settlePart(part: PreparedPart, record: TxnRecord | undefined): void {
    if (record !== undefined && record.commit === undefined) return;
    const end = this.#begin(part.txnId);
    if (end === undefined) return;
    if (record?.commit !== undefined) return this.#resolve(part, record.commit, end);
    this.#deps.peers.push(part, (state) => {
      if (state === undefined || state.state === 'pending' || !this.#deps.serving()) end();
      else this.#resolve(part, state.state === 'committed' ? state.commit : { type: 'abort' }, end);
    });
  }

  #resolve(part: PreparedPart, resolution: TxnResolution, end: () => void): void {
    this.#deps.propose(resolveOf(part, resolution), end);
  }

  /** ST2. */
  #settleRecord({ txnId, primaryKey, requestId, spans, commit }: TxnRecord): void {
    const end = this.#begin(txnId);
    if (end === undefined) return;
    if (commit === undefined) {
      const decision = { type: 'push' } as const;
      this.#deps.propose({ type: 'txnDecide', txnId, primaryKey, requestId, decision }, end);
      return;
    }
    let left = spans.length;
    let failed = false;
    const resolved = (error: ServiceError | undefined): void => {
      failed ||= error !== undefined;
      if (--left > 0) return;
      if (failed || !this.#deps.serving()) end();
      else this.#deps.propose({ type: 'txnForget', txnId, primaryKey }, end);
    };
    for (const [part, span] of spans.entries()) {
      this.#deps.peers.resolve({ type: 'txnResolve', txnId, part, span, requestId, resolution: commit }, resolved);
    }
  }
}

/** Resolves a part that this range holds. */
function resolveOf(part: PreparedPart, resolution: TxnResolution): TxnResolve {
  const { txnId, requestId } = part;
  return { type: 'txnResolve', txnId, part: part.part, span: spanOfPart(part), requestId, resolution };
}
