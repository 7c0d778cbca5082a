import { LazyMap, LazySet, ServiceError } from '@remora/base';
import type { Command, TxnPart } from '@remora/protocol';
import { overlapsPart, type TakenBy } from './intent-conflicts.ts';

/** A command or a read that waits at a leader for the end of a transaction. */
export interface IntentWaiter {
  readonly txnId: string;
  /** In range time; 0: never. */
  readonly deadlineMs: number;
  /** Absent for a read. */
  readonly command?: Command;
  /** The request id of the command. */
  readonly requestId?: string;
  /**
   * Called when nothing of the transaction is left. The waiter then asks again, and may wait for another transaction.
   */
  readonly retry: () => void;
  readonly fail: (error: ServiceError) => void;
}

/** The largest number of waiters; more are refused. */
const WAITING_MAX = 20_000;
/** IW4. How many looks report a transaction that a prepare met as awaited. */
const TOLD_OF_MET = 2;

/**
 * Commands and reads of one range that wait at its leader for transactions over several ranges (T2 of decision 19).
 *
 * IW1. Waiters continue in the order of their arrival, once nothing is left here of the transactions that they wait
 *      for.
 * IW2. While a command waits, and then until it is applied, no transaction may prepare what the command waits for or
 *      has waited for. So a flow of transactions cannot keep a command waiting for ever (`isAwaited`).
 * IW3. A command waits until its deadline, a read as long as its caller; all waits end when leadership is lost.
 * IW4. A prepare does not wait, but its coordinator retries. The transactions that it met count as awaited for a while.
 *      So they are looked up, and a transaction that has committed meanwhile does not block others until it expires.
 */
export class IntentWaitQueue {
  #waiters = new LazySet<IntentWaiter>();
  /** IW2. */
  readonly #awaiting = new LazySet<Command>();
  /** IW4. For each transaction, how many more looks report it as awaited. */
  readonly #met = new LazyMap<string, number>();

  get size(): number {
    return this.#waiters.size;
  }

  /** IW4. */
  met(txnIds: Iterable<string>): void {
    for (const txnId of txnIds) if (this.#met.size < WAITING_MAX) this.#met.set(txnId, TOLD_OF_MET);
  }

  /** Returns the transactions with waiters, for one look at all that are prepared. */
  lookAtAwaited(): ReadonlySet<string> {
    const awaited = new Set<string>(this.#met.keys());
    for (const [txnId, times] of this.#met) {
      if (times > 1) this.#met.set(txnId, times - 1);
      else this.#met.delete(txnId);
    }
    for (const { txnId } of this.#waiters) awaited.add(txnId);
    return awaited;
  }

  /** Returns a function that removes the waiter. */
  add(waiter: IntentWaiter): () => void {
    if (this.#waiters.size >= WAITING_MAX) {
      waiter.fail(
        new ServiceError('RESOURCE_EXHAUSTED', 'too many wait for transactions in the range; try again later'),
      );
      return () => {};
    }
    this.#waiters.add(waiter);
    if (waiter.command !== undefined) this.#awaiting.add(waiter.command);
    return () => this.#waiters.delete(waiter);
  }

  /** Whether a command with this request id waits. */
  isWaiting(requestId: string): boolean {
    for (const waiter of this.#waiters) if (waiter.requestId === requestId) return true;
    return false;
  }

  /** A command that waited was applied or refused. */
  done(command: Command): void {
    this.#awaiting.delete(command);
  }

  /** IW2. Whether a part conflicts with commands that wait, or have waited. */
  isAwaited(part: TxnPart, takenBy: TakenBy): boolean {
    for (const command of this.#awaiting) if (overlapsPart(command, part, takenBy)) return true;
    return false;
  }

  /** An entry was applied (IW1). */
  applied(isPrepared: (txnId: string) => boolean): void {
    if (this.#waiters.size === 0) return;
    const prepared = new Map<string, boolean>();
    for (const waiter of [...this.#waiters]) {
      const { txnId } = waiter;
      const waits = prepared.get(txnId) ?? isPrepared(txnId);
      prepared.set(txnId, waits);
      if (!waits && this.#waiters.delete(waiter)) waiter.retry();
    }
  }

  /** IW3. */
  expire(rangeTimeMs: number): void {
    for (const waiter of [...this.#waiters]) {
      if (waiter.deadlineMs === 0 || waiter.deadlineMs >= rangeTimeMs) continue;
      this.#waiters.delete(waiter);
      const message = 'the deadline passed while the command waited for a transaction over several ranges';
      waiter.fail(new ServiceError('DEADLINE_EXCEEDED', message));
    }
  }

  /** IW3. */
  abandon(error: ServiceError): void {
    const waiters = this.#waiters;
    this.#waiters = new LazySet();
    this.#awaiting.clear();
    this.#met.clear();
    for (const waiter of waiters) waiter.fail(error);
  }
}
