import { type Clock, ServiceError, unreachable } from '@remora/base';
import { type Command, type CommandBatch, type Epoch, encodeEntry } from '@remora/protocol';
import type { Group, LogPosition, Refusal } from '@remora/raft';
import type { Outcome } from '../state/outcome-codec.ts';

/** Told the outcome once the entry that carried the command is applied, or the error that kept it from being known. */
export type OutcomeDone = (error: ServiceError | undefined, outcome: Outcome | undefined) => void;

interface Queued {
  readonly item: CommandBatch['commands'][number];
  readonly bytes: number;
  readonly done: OutcomeDone;
}

interface InFlight {
  readonly term: number;
  readonly batch: CommandBatch;
  readonly done: readonly OutcomeDone[];
}

/** Commands waiting to be proposed, and bytes of them; beyond that new ones are refused. */
const QUEUED_MAX = 20_000;
const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** An entry is closed at this many commands or bytes: bounds what one append carries. */
const ENTRY_COMMANDS_MAX = 1_024;
const ENTRY_BYTES_MAX = 1024 * 1024;

/**
 * The leader's commands on their way into the log.
 *
 * P1. All commands that arrive in one loop turn share an entry (design §2).
 * P2. Each command is answered exactly once: with its outcome, or with an error that says whether it may still be
 *     applied. Refused before it was proposed: certain. Proposed, and leadership was lost: unknown.
 */
export class Proposals {
  readonly #clock: Clock;
  readonly #stamp: () => { readonly rangeTimeMs: number; readonly wallMs: number; readonly epoch: Epoch };
  #group: Group | undefined;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  #scheduled = false;
  readonly #inFlight = new Map<number, InFlight>();

  constructor(
    clock: Clock,
    stamp: () => { readonly rangeTimeMs: number; readonly wallMs: number; readonly epoch: Epoch },
  ) {
    this.#clock = clock;
    this.#stamp = stamp;
  }

  attach(group: Group): void {
    this.#group = group;
  }

  /** Commands that are not answered. */
  get underWay(): number {
    let proposed = 0;
    for (const { done } of this.#inFlight.values()) proposed += done.length;
    return this.#queue.length + proposed;
  }

  add(item: CommandBatch['commands'][number], bytes: number, done: OutcomeDone): void {
    if (this.#queue.length >= QUEUED_MAX || this.#queuedBytes + bytes > QUEUED_BYTES_MAX) {
      done(
        new ServiceError('RESOURCE_EXHAUSTED', 'the range has too many commands waiting; try again later'),
        undefined,
      );
      return;
    }
    this.#queue.push({ item, bytes, done });
    this.#queuedBytes += bytes;
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#clock.setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    let start = 0;
    while (start < queue.length) {
      let end = start;
      let bytes = 0;
      while (end < queue.length && end - start < ENTRY_COMMANDS_MAX && (end === start || bytes < ENTRY_BYTES_MAX)) {
        bytes += queue[end]?.bytes ?? 0;
        end++;
      }
      this.#propose(start === 0 && end === queue.length ? queue : queue.slice(start, end));
      start = end;
    }
  }

  #propose(queued: readonly Queued[]): void {
    const batch: CommandBatch = { ...this.#stamp(), commands: queued.map((q) => q.item) };
    const proposed = this.#group?.propose(encodeEntry(batch)) ?? { refused: 'notLeader' as const };
    if ('refused' in proposed) {
      const error = refusalError(proposed.refused);
      for (const { done } of queued) done(error, undefined);
      return;
    }
    // A leader of a later term overwrites what it proposed there in an earlier one, before it was told of the change.
    this.#abandon(proposed.index);
    this.#inFlight.set(proposed.index, { term: proposed.term, batch, done: queued.map((q) => q.done) });
  }

  /** What this leader proposed at a position that is now being applied; another entry there means that ours is lost. */
  take(position: LogPosition): { readonly batch: CommandBatch; readonly done: readonly OutcomeDone[] } | undefined {
    const mine = this.#inFlight.get(position.index);
    if (mine === undefined) return undefined;
    this.#inFlight.delete(position.index);
    if (mine.term === position.term) return mine;
    // Another term's entry is committed here, so ours never will be: nothing was applied.
    const error = new ServiceError('NOT_LEADER', 'leadership moved before the command was committed');
    for (const done of mine.done) done(error, undefined);
    return undefined;
  }

  /** Leadership is lost: what was proposed may still be committed by the next leader. */
  abandon(): void {
    for (const index of [...this.#inFlight.keys()]) this.#abandon(index);
  }

  #abandon(index: number): void {
    const lost = this.#inFlight.get(index);
    if (lost === undefined) return;
    this.#inFlight.delete(index);
    const unknown = new ServiceError('UNKNOWN_OUTCOME', 'leadership moved while the command was being replicated');
    for (const done of lost.done) done(unknown, undefined);
  }
}

/** What a caller is told when nothing was proposed. */
export function refusalError(refused: Refusal): ServiceError {
  switch (refused) {
    case 'notLeader':
      return new ServiceError('NOT_LEADER', 'this replica does not lead the range');
    case 'queueFull':
      return new ServiceError('RESOURCE_EXHAUSTED', 'too much is waiting to be replicated; try again later');
    case 'transferring':
      return new ServiceError('UNAVAILABLE', 'leadership is being transferred');
    case 'noOwnTermCommit':
      return new ServiceError('UNAVAILABLE', 'the new leader of the range is catching up');
    case 'confPending':
      return new ServiceError('UNAVAILABLE', 'another change of the membership is under way');
    case 'confInvalid':
      return new ServiceError('INVALID_ARGUMENT', 'the membership cannot be changed so');
    case 'notVoter':
      return new ServiceError('INVALID_ARGUMENT', 'only a voter can lead the range');
    default:
      return unreachable(refused);
  }
}

/** About how many bytes a command takes in the log: for bounds, not for accounting. */
export function commandBytes(command: Command): number {
  switch (command.type) {
    case 'kv':
      return 64 + command.op.key.length + (command.op.type === 'put' ? command.op.value.length : 0);
    case 'txn':
      return [...command.txn.success, ...command.txn.failure].reduce(
        (sum, op) =>
          sum +
          (op.type === 'txn'
            ? commandBytes({ type: 'txn', txn: op.txn })
            : 64 + op.key.length + (op.type === 'put' ? op.value.length : 0)),
        64 * (1 + command.txn.compare.length),
      );
    case 'lock':
      return 200;
    default:
      return 64;
  }
}
