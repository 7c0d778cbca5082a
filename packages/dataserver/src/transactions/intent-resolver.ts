import type { Clock, ServiceError, Timer } from '@remora/base';
import type { Command, TxnResolution, TxnResolve, TxnState } from '@remora/protocol';
import type { IntentWaitQueue } from './intent-wait-queue.ts';
import { type PreparedPart, spanOfPart, type TxnRecord } from './prepared-part.ts';
import type { RangeTransactions } from './range-transactions.ts';

/** The way from a range to others, for what coordinators have left of transactions over several of them. */
export interface TransactionPeers {
  /** Has the record of a transaction aborted if that has expired, and tells how it stands. */
  push(txn: Pick<PreparedPart, 'txnId' | 'primaryKey'>, done: (state: TxnState | undefined) => void): void;
  /** Resolves what ranges have of a transaction in a span; without an error when all of it is known to be resolved. */
  resolve(command: TxnResolve, done: (error: ServiceError | undefined) => void): void;
}

export interface IntentResolverDeps {
  readonly clock: Clock;
  readonly peers: TransactionPeers;
  readonly waits: IntentWaitQueue;
  /** As it is now: an installed snapshot brings another one. */
  readonly transactions: () => RangeTransactions;
  /** Of the range, as its leader reckons it. */
  readonly rangeTimeMs: () => number;
  /** Whether it leads, and takes commands. */
  readonly serving: () => boolean;
  /** `done` is called when the command is applied, or never will be. */
  readonly propose: (command: Command, done: () => void) => void;
}

const INTERVAL_MS = 100;
/** How many transactions are asked after at a time. */
const UNDER_WAY_MAX = 64;

/**
 * Ends, at the leader of a range, what coordinators have left of transactions (design §11: anyone who meets an old
 * intent asks the primary).
 *
 * ST1. A part that has expired, or that somebody waits for since the last look, is asked after at its record, and
 *      resolved as that says. It is never aborted on any other ground: only the record's range knows its time (T3).
 * ST2. A record here that has expired and is not decided is aborted. One that is committed is dropped when all parts of
 *      it are known to be resolved, wherever they are by now (T7).
 * ST3. A transaction is asked after once at a time; there is a timer only while there is any, so a range without costs
 *      nothing.
 * ST4. Where there are more than can be asked after at a time, none is asked after again before all others had their
 *      turn: those whose record, or whose parts, are where nobody answers hold up no others.
 */
export class IntentResolver {
  readonly #deps: IntentResolverDeps;
  /** ST3. */
  readonly #inFlight = new Set<string>();
  /** ST4. Those that had their turn while others wait for theirs; of these, those that are there yet. */
  #hadTurn = new Set<string>();
  /** ST4. Some were passed over at this look. */
  #full = false;
  /** Waited for at the last look. */
  #awaited: ReadonlySet<string> = new Set();
  #timer: Timer | undefined;

  constructor(deps: IntentResolverDeps) {
    this.#deps = deps;
  }

  /** Something may be left to do: an entry was applied, somebody waits, or leadership began. */
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
    this.#awaited = new Set();
    this.#hadTurn.clear();
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
    this.#hadTurn = this.#full ? this.#stillThere() : new Set();
  }

  #stillThere(): Set<string> {
    const { parts, records } = this.#deps.transactions();
    const there = new Set([...parts, ...records].map(({ txnId }) => txnId));
    return new Set([...this.#hadTurn].filter((txnId) => there.has(txnId)));
  }

  /** ST3, ST4. */
  #begin(txnId: string): (() => void) | undefined {
    if (this.#inFlight.has(txnId) || this.#hadTurn.has(txnId)) return undefined;
    if (this.#inFlight.size >= UNDER_WAY_MAX) {
      this.#full = true;
      return undefined;
    }
    this.#inFlight.add(txnId);
    this.#hadTurn.add(txnId);
    return () => this.#inFlight.delete(txnId);
  }

  /** ST1. With the record here, that is what decides (ST2), unless this part came later, in a merge. */
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

/** Of a part that this very range has. */
function resolveOf(part: PreparedPart, resolution: TxnResolution): TxnResolve {
  const { txnId, requestId } = part;
  return { type: 'txnResolve', txnId, part: part.part, span: spanOfPart(part), requestId, resolution };
}
