import { type Clock, ServiceError } from '@remora/base';
import type { RangeReplica } from '../range/range-replica.ts';
import type { Commands } from '../range/requests/commands.ts';
import { IntentResolver, type TransactionPeers } from './intent-resolver.ts';
import { IntentWaitQueue } from './intent-wait-queue.ts';

export interface TransactionServiceDeps {
  readonly clock: Clock;
  /** Without it, what coordinators leave is ended only by whoever else asks for it. */
  readonly transactionPeers?: TransactionPeers;
  readonly rangeTimeMs: () => number;
  readonly commands: () => Commands;
}

/** What a replica does for transactions over several ranges beside applying them. */
export class TransactionService {
  readonly waits = new IntentWaitQueue();
  readonly #replica: RangeReplica;
  readonly #intentResolver: IntentResolver;

  constructor(replica: RangeReplica, deps: TransactionServiceDeps) {
    const { clock, transactionPeers: peers = NOBODY, rangeTimeMs, commands } = deps;
    this.#replica = replica;
    this.#intentResolver = new IntentResolver({
      ...{ clock, peers, rangeTimeMs, waits: this.waits },
      transactions: () => replica.state.transactions,
      serving: () => replica.serving,
      propose: (command, done) => commands().propose(command, () => done()),
    });
  }

  /** An entry was applied. */
  applied(): void {
    if (this.waits.size > 0) this.waits.applied((txnId) => this.#replica.state.transactions.isPrepared(txnId));
    if (this.#replica.serving) this.#intentResolver.wake();
  }

  /** Leadership is lost. */
  stop(error: ServiceError): void {
    this.waits.abandon(error);
    this.#intentResolver.stop();
  }
}

const NOBODY: TransactionPeers = {
  push: (_txn, done) => done(undefined),
  resolve: (_command, done) => done(new ServiceError('UNAVAILABLE', 'this node knows no way to other ranges')),
};
