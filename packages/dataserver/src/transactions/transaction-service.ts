import { type Clock, ServiceError } from '@remora/base';
import type { ReplicaContext } from '../range/replica-context.ts';
import type { CommandQueue } from '../range/requests/command-queue.ts';
import { IntentResolver, type TransactionPeers } from './intent-resolver.ts';
import type { IntentWaitQueue } from './intent-wait-queue.ts';

interface TransactionServiceDeps {
  readonly clock: Clock;
  readonly waits: IntentWaitQueue;
  /** If absent, abandoned transactions are finished only when another caller asks for it. */
  readonly transactionPeers?: TransactionPeers | undefined;
  readonly commands: Pick<CommandQueue, 'propose'>;
}

/**
 * The part of a replica that resolves transactions over several ranges; apply does the rest (range-transactions.ts).
 */
export class TransactionService {
  readonly #context: ReplicaContext;
  readonly #waits: IntentWaitQueue;
  readonly #intentResolver: IntentResolver;

  constructor(context: ReplicaContext, deps: TransactionServiceDeps) {
    const { clock, waits, transactionPeers: peers = NOBODY, commands } = deps;
    this.#context = context;
    this.#waits = waits;
    this.#intentResolver = new IntentResolver({
      clock,
      peers,
      waits,
      rangeTimeMs: () => context.time.nowMs(),
      transactions: () => context.state.transactions,
      serving: () => context.serving,
      propose: (command, done) => commands.propose(command, () => done()),
    });
  }

  /** An entry was applied. */
  applied(): void {
    const { state, serving } = this.#context;
    if (this.#waits.size > 0) this.#waits.applied((txnId) => state.transactions.isPrepared(txnId));
    if (serving) this.#intentResolver.wake();
  }

  /** Leadership is lost. */
  stop(error: ServiceError): void {
    this.#waits.abandon(error);
    this.#intentResolver.stop();
  }
}

const NOBODY: TransactionPeers = {
  push: (_txn, done) => done(undefined),
  resolve: (_command, done) => done(new ServiceError('UNAVAILABLE', 'this node knows no way to other ranges')),
};
