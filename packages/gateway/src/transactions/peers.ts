import { type ServiceError, toServiceError } from '@remora/base';
import type { TxnResolve, TxnState } from '@remora/protocol';
import type { RangeCallsDeps } from '../routing/calls/range-calls.ts';
import { TransactionResolution, type TxnName } from './txn-resolution.ts';

/**
 * Lets a range finish transactions that their coordinators have left unfinished: it reaches the record of a
 * transaction, and the ranges that have its parts now. Each call ends in bounded time.
 */
export class TransactionPeers {
  readonly #resolution: TransactionResolution;

  constructor(deps: RangeCallsDeps) {
    this.#resolution = new TransactionResolution(deps);
  }

  /** Aborts a transaction in its record if it has expired. Calls `done` with its state; undefined: no answer. */
  push(txn: Omit<TxnName, 'requestId'>, done: (state: TxnState | undefined) => void): void {
    this.#resolution.push({ ...txn, requestId: '' }).then(done, () => done(undefined));
  }

  /** Resolves the parts of a transaction in a span. `done` has no error if all of them are known to be resolved. */
  resolve(command: TxnResolve, done: (error: ServiceError | undefined) => void): void {
    const { txnId, requestId, part, span, resolution } = command;
    this.#resolution.resolve({ txnId, requestId }, { part, span }, resolution).then(
      () => done(undefined),
      (error: unknown) => done(toServiceError(error)),
    );
  }
}
