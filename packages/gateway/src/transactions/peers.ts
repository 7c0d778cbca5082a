import { type ServiceError, toServiceError } from '@remora/base';
import type { TxnResolve, TxnState } from '@remora/protocol';
import type { RangeCallsDeps } from '../routing/calls/range-calls.ts';
import { TransactionResolution, type TxnName } from './txn-resolution.ts';

/**
 * The way from a range to others, for what coordinators have left: to the record of a transaction, and to whatever ranges
 * have its parts by now. Each call ends in bounded time.
 */
export class TransactionPeers {
  readonly #resolution: TransactionResolution;

  constructor(deps: RangeCallsDeps) {
    this.#resolution = new TransactionResolution(deps);
  }

  /** Has the record of a transaction aborted if that has expired, and tells how it stands; undefined: nobody says. */
  push(txn: Omit<TxnName, 'requestId'>, done: (state: TxnState | undefined) => void): void {
    this.#resolution.push({ ...txn, requestId: '' }).then(done, () => done(undefined));
  }

  /** Resolves what ranges have of a transaction in a span; without an error when all of it is known to be resolved. */
  resolve(command: TxnResolve, done: (error: ServiceError | undefined) => void): void {
    const { txnId, requestId, part, span, resolution } = command;
    this.#resolution.resolve({ txnId, requestId }, { part, span }, resolution).then(
      () => done(undefined),
      (error: unknown) => done(toServiceError(error)),
    );
  }
}
