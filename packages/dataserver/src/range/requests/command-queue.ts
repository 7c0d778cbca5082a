import type { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { endsLease } from '../../state/leases/lease-ending.ts';
import type { Outcome } from '../../state/outcomes/outcome-codec.ts';
import { heldBy } from '../../transactions/answers.ts';
import type { IntentWaitQueue } from '../../transactions/intent-wait-queue.ts';
import { LeaseEndPace } from '../leases/lease-end-pace.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { PendingCommand } from './pending-command.ts';
import type { Proposals } from './proposals.ts';

/** A pending command that may have to wait in the queue. Its `complete` calls `takesBack` first. */
export interface QueuedCommand extends PendingCommand {
  /** `version` of the range's epoch when the command began to wait (CQ1). */
  epochVersion: number;
}

/** Called once with the outcome of a command that the leader itself proposed; undefined: the outcome is not known. */
type OwnCommandDone = (outcome: Outcome | undefined) => void;

interface CommandQueueDeps {
  readonly proposals: Proposals;
  readonly intentWaitQueue: IntentWaitQueue;
}

/** The size that is assumed for a command of the leader itself. */
const OWN_COMMAND_BYTES = 64;

/**
 * Commands of a range's leader that have to wait before they are proposed, and the commands that the leader itself
 * proposes.
 *
 * CQ1. A command that needs what a transaction over several ranges holds waits for the end of that transaction
 *      (intent-wait-queue.ts). The conflict may be found only at apply, which then changes nothing. If the range is
 *      split or merged while a client's command waits, the command is not proposed: later attempts of the request may
 *      already have been told so (commands.ts CM3).
 * CQ2. Commands that end leases are proposed one after the other (lease-end-pace.ts); CQ1 holds for them too.
 */
export class CommandQueue {
  readonly #context: ReplicaContext;
  readonly #deps: CommandQueueDeps;
  readonly #ends: LeaseEndPace<QueuedCommand>;

  constructor(context: ReplicaContext, deps: CommandQueueDeps) {
    this.#context = context;
    this.#deps = deps;
    this.#ends = new LeaseEndPace({
      rows: (end) => this.#rowsOf(end),
      go: (end) => this.#proposeEnd(end),
      refuse: (end, error) => end.complete(error, undefined),
    });
  }

  /** Commands that are not proposed yet, or not answered. */
  get inFlight(): number {
    return this.#deps.proposals.inFlight + this.#ends.waiting;
  }

  /**
   * Takes a command that cannot be proposed now, and returns true: the command is proposed from here later, or
   * completed with an error. Returns false if the caller may propose the command now.
   */
  holds(pending: QueuedCommand): boolean {
    if (!endsLease(pending.item.command)) return this.#awaitsHolder(pending);
    pending.epochVersion = this.#epochVersion;
    this.#ends.add(pending); // CQ2
    return true;
  }

  /**
   * Called first when a command is completed. Returns true if the command met a transaction at apply, and waits for it
   * (CQ1): it is completed again later. Returns false if the command is done.
   */
  takesBack(pending: QueuedCommand, outcome: Outcome | undefined): boolean {
    const { command } = pending.item;
    if (endsLease(command)) this.#ends.over(pending);
    const txnId = outcome && heldBy(outcome);
    if (txnId !== undefined && this.#context.leading) {
      this.#await(txnId, pending);
      return true;
    }
    this.#deps.intentWaitQueue.done(command);
    return false;
  }

  /** Proposes a command of the leader itself. */
  propose(command: Command, done?: OwnCommandDone): void {
    this.#add(new OwnCommand(this, command, done));
  }

  /**
   * The same in an entry of its own, without waiting for anything. `done` also gets the error if it was not proposed.
   */
  proposeAlone(command: Command, done: PendingCommand['complete']): void {
    const item = { requestId: '', deadlineMs: 0, command };
    this.#deps.proposals.addAlone({ item, bytes: OWN_COMMAND_BYTES, complete: done });
  }

  #add(pending: QueuedCommand): void {
    if (!this.holds(pending)) this.#deps.proposals.add(pending);
  }

  /** CQ1. */
  #awaitsHolder(pending: QueuedCommand): boolean {
    const holder = this.#context.state.transactions.holder(pending.item.command);
    if (holder === undefined) return false;
    this.#await(holder.txnId, pending);
    return true;
  }

  #await(txnId: string, pending: QueuedCommand): void {
    const { command, deadlineMs, requestId } = pending.item;
    pending.epochVersion = this.#epochVersion;
    this.#deps.intentWaitQueue.add({
      ...{ txnId, deadlineMs, command, requestId },
      retry: () => {
        if (this.#isStale(pending)) pending.complete(this.#context.staleEpoch(), undefined);
        else this.#add(pending);
      },
      fail: (error) => pending.complete(error, undefined),
    });
  }

  /** CQ2. */
  #proposeEnd(end: QueuedCommand): void {
    if (this.#isStale(end)) end.complete(this.#context.staleEpoch(), undefined);
    else if (this.#awaitsHolder(end)) this.#ends.over(end);
    else this.#deps.proposals.add(end);
  }

  /** The keys and locks that the end of a lease takes, as far as is known now. */
  #rowsOf({ item: { command } }: QueuedCommand): number {
    if (!endsLease(command)) return 0;
    const { keys, locks } = this.#context.state.takenBy(command);
    return keys.length + locks.length;
  }

  get #epochVersion(): number {
    return this.#context.state.descriptor.epoch.version;
  }

  #isStale({ item, epochVersion }: QueuedCommand): boolean {
    return item.requestId !== '' && epochVersion !== this.#epochVersion;
  }
}

class OwnCommand implements QueuedCommand {
  readonly item: QueuedCommand['item'];
  readonly bytes = OWN_COMMAND_BYTES;
  epochVersion = 0;
  readonly #queue: CommandQueue;
  readonly #done: OwnCommandDone | undefined;

  constructor(queue: CommandQueue, command: Command, done: OwnCommandDone | undefined) {
    this.#queue = queue;
    this.item = { requestId: '', deadlineMs: 0, command };
    this.#done = done;
  }

  complete(_error: ServiceError | undefined, outcome: Outcome | undefined): void {
    if (!this.#queue.takesBack(this, outcome)) this.#done?.(outcome);
  }
}
