import { type Clock, type ClusterVersion, FIRST_VERSION, LazyMap, ServiceError, unreachable } from '@remora/base';
import {
  type BatchedCommand,
  type Command,
  type CommandBatch,
  drawsRevisions,
  encodeEntry,
  type RevisionBlock,
  requestTag,
} from '@remora/protocol';
import type { Group, LogPosition, Refusal } from '@remora/raft';
import type { RangeTimes } from '../../range-times.ts';
import type { RevisionSource } from '../../revisions/revision-drawer.ts';
import type { RangeFields } from '../../state/range-fields.ts';
import type { PendingCommand } from './pending-command.ts';
import { RevisionAllocationQueue } from './revision-allocation-queue.ts';

/** An entry that this leader proposed. */
interface ProposedEntry {
  readonly term: number;
  readonly batch: CommandBatch;
  /** The commands of the batch. */
  readonly pending: readonly PendingCommand[];
  /** When it was proposed; 0: not measured. */
  readonly proposedMs: number;
}

interface ProposalDeps {
  readonly clock: Clock;
  readonly drawer: Pick<RevisionSource, 'want'>;
  readonly state: Pick<RangeFields, 'rangeId' | 'descriptor' | 'revision'>;
  /** The version of what is proposed. */
  readonly version: () => ClusterVersion;
  /** The time of the range, in ms. */
  readonly rangeTimeMs: () => number;
  readonly times?: RangeTimes | undefined;
  /** The error for commands whose keys may belong to another range by now; it names that range. */
  readonly staleEpoch: () => ServiceError;
}

/** Commands waiting to be proposed, and bytes of them; beyond that new ones are refused. */
const QUEUED_MAX = 20_000;
const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** An entry is closed at this many commands or bytes. That bounds the size of one append. */
const ENTRY_COMMANDS_MAX = 1_024;
const ENTRY_BYTES_MAX = 1024 * 1024;

/**
 * Proposes the leader's commands to the log.
 *
 * P1. All commands that arrive in one loop turn share an entry (design §2).
 * P2. Each command is answered exactly once: with its outcome, or with an error that says whether it may still be
 *     applied. If it was refused before the proposal, that is certain. If it was proposed and leadership was lost, the
 *     outcome is unknown.
 * P3. While the range counts its revisions by itself, a proposal needs no other node (design §8). Once the master
 *     numbers them, commands that may change something wait for a block (revision-allocation-queue.ts); the others are
 *     proposed as before.
 * P4. An entry carries the version in force when it is proposed: the rules by which all replicas apply it
 *     (docs/decisions/0100).
 */
export class Proposals {
  readonly #deps: ProposalDeps;
  #group: Group | undefined;
  #queue: PendingCommand[] = [];
  #queuedBytes = 0;
  #scheduled = false;
  readonly #inFlight = new LazyMap<number, ProposedEntry>();
  /** The entry that apply took last; it may still wait for cold data. */
  #taken: ProposedEntry | undefined;
  /** The index of that entry. */
  #takenAt = 0;
  /** P3. */
  readonly #allocations: RevisionAllocationQueue;

  constructor(deps: ProposalDeps) {
    this.#deps = deps;
    const { state, drawer, rangeTimeMs, staleEpoch, times } = deps;
    this.#allocations = new RevisionAllocationQueue({
      rangeId: state.rangeId,
      times,
      drawer,
      rangeTimeMs,
      revision: () => state.revision,
      epochVersion: () => state.descriptor.epoch.version,
      group: () => this.#group ?? NO_GROUP,
      staleEpoch,
      propose: (queued, block) => this.#proposeNumbered(queued, block),
    });
  }

  attach(group: Group): void {
    this.#group = group;
  }

  /** The number of commands that are not answered. */
  get inFlight(): number {
    let proposed = 0;
    for (const { pending } of this.#inFlight.values()) proposed += pending.length;
    return this.#queue.length + this.#allocations.length + proposed;
  }

  /** Whether an attempt of a request may still be applied. Examines all commands that are in progress. */
  isInFlight(requestId: string): boolean {
    const isIt = ({ requestId: other }: BatchedCommand): boolean => other === requestId;
    if (this.#queue.some(({ item }) => isIt(item)) || this.#allocations.some(isIt)) return true;
    if (this.#taken?.batch.commands.some(isIt)) return true;
    for (const { batch } of this.#inFlight.values()) if (batch.commands.some(isIt)) return true;
    return false;
  }

  add(pending: PendingCommand): void {
    const { bytes } = pending;
    const queued = this.#queue.length + this.#allocations.length;
    if (queued >= QUEUED_MAX || this.#queuedBytes + this.#allocations.bytes + bytes > QUEUED_BYTES_MAX) {
      const message = 'the range has too many commands waiting; try again later';
      return pending.complete(new ServiceError('RESOURCE_EXHAUSTED', message), undefined);
    }
    this.#queue.push(pending);
    this.#queuedBytes += bytes;
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#deps.clock.setImmediate(() => this.#flush());
  }

  /** Proposes a command in an entry of its own, after everything that is queued. */
  addAlone(pending: PendingCommand): void {
    this.#flush();
    this.#propose([pending], undefined);
  }

  #flush(): void {
    this.#scheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    const ready = this.#deps.state.descriptor.revisionSource === 'range' ? queue : this.#withoutNumbered(queue);
    for (const entry of entriesOf(ready)) this.#propose(entry, undefined);
  }

  /** P3. Makes commands that may change something wait for revisions; returns the others. */
  #withoutNumbered(queue: readonly PendingCommand[]): readonly PendingCommand[] {
    const version = this.#deps.version();
    const needing = queue.filter(({ item }) => drawsRevisions(item.command, version));
    if (needing.length > 0) this.#allocations.add(needing);
    return needing.length < queue.length ? queue.filter(({ item }) => !drawsRevisions(item.command, version)) : [];
  }

  /** One revision of the block for each command. */
  #proposeNumbered(queue: readonly PendingCommand[], block: RevisionBlock): void {
    let { first } = block;
    for (const entry of entriesOf(queue)) {
      this.#propose(entry, { first, count: entry.length });
      first += entry.length;
    }
  }

  /** Proposes one entry. */
  #propose(pending: readonly PendingCommand[], block: RevisionBlock | undefined): void {
    const batch = this.#batchOf(pending, block);
    const proposed = this.#group?.propose(encodeEntry(batch)) ?? { refused: 'notLeader' as const };
    if ('refused' in proposed) {
      const error = refusalError(proposed.refused);
      for (const command of pending) command.complete(error, undefined);
      return;
    }
    // A leader overwrites what it proposed there in an earlier term, before it learned of the change.
    this.#abandon(proposed.index);
    const proposedMs = this.#deps.times?.now() ?? 0;
    this.#inFlight.set(proposed.index, { term: proposed.term, batch, pending, proposedMs });
  }

  #batchOf(pending: readonly PendingCommand[], block: RevisionBlock | undefined): CommandBatch {
    const { clock, state, rangeTimeMs } = this.#deps;
    const commands = pending.map(({ item }) => item);
    const stamped = { rangeTimeMs: rangeTimeMs(), wallMs: clock.wallMs(), epoch: state.descriptor.epoch };
    const batch = block === undefined ? { ...stamped, commands } : { ...stamped, block, commands };
    const version = this.#deps.version();
    return version === FIRST_VERSION ? batch : { version, ...batch }; // P4
  }

  /**
   * Calls `done` with the log position up to which this leader must have applied its log so that every block requested
   * before this call is used up. Waits for the requests in progress. An entry that is being applied still takes its
   * revisions.
   */
  whenSettled(done: (index: number) => void): void {
    this.#allocations.whenSettled(() =>
      done([...this.#inFlight.keys()].reduce((a, b) => Math.max(a, b), this.#takenAt)),
    );
  }

  /**
   * Returns what this leader proposed at a position that is now being applied; if another entry is there, the proposal
   * is lost.
   */
  take(position: LogPosition): Pick<ProposedEntry, 'batch' | 'pending'> | undefined {
    const mine = this.#inFlight.get(position.index);
    this.#taken = mine?.term === position.term ? mine : undefined;
    this.#takenAt = position.index;
    if (mine === undefined) return undefined;
    this.#inFlight.delete(position.index);
    if (mine.term === position.term) {
      this.#measure(mine, position.index);
      return mine;
    }
    // The committed entry here has another term, so the proposal never will be committed: nothing was applied.
    const error = new ServiceError('NOT_LEADER', 'leadership moved before the command was committed');
    for (const command of mine.pending) command.complete(error, undefined);
    return undefined;
  }

  #measure({ pending, proposedMs }: ProposedEntry, index: number): void {
    const { times, state } = this.#deps;
    if (times === undefined) return;
    const commitMs = times.now() - proposedMs;
    if (!times.committed(commitMs)) return;
    const request = requestTag(pending[0]?.item.requestId ?? '');
    times.slow({ rangeId: state.rangeId, index, commands: pending.length, request, commitMs });
  }

  /** Leadership is lost: the next leader may still commit what was proposed. */
  abandon(): void {
    this.#allocations.abandon(new ServiceError('NOT_LEADER', 'leadership moved before the command was proposed'));
    for (const index of [...this.#inFlight.keys()]) this.#abandon(index);
  }

  #abandon(index: number): void {
    const lost = this.#inFlight.get(index);
    if (lost === undefined) return;
    this.#inFlight.delete(index);
    const unknown = new ServiceError('UNKNOWN_OUTCOME', 'leadership moved while the command was being replicated');
    for (const command of lost.pending) command.complete(unknown, undefined);
  }
}

/** Divides commands into entries. */
function entriesOf(queue: readonly PendingCommand[]): readonly (readonly PendingCommand[])[] {
  const entries: (readonly PendingCommand[])[] = [];
  let start = 0;
  while (start < queue.length) {
    let end = start;
    let bytes = 0;
    while (end < queue.length && end - start < ENTRY_COMMANDS_MAX && (end === start || bytes < ENTRY_BYTES_MAX)) {
      bytes += queue[end]?.bytes ?? 0;
      end++;
    }
    entries.push(start === 0 && end === queue.length ? queue : queue.slice(start, end));
    start = end;
  }
  return entries;
}

/** Before the group is attached nothing can be proposed. */
const NO_GROUP = { role: 'follower', term: 0 } as const;

/** The caller's error if nothing was proposed. */
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
      return new ServiceError('UNAVAILABLE', 'another change of the membership is in progress');
    case 'confInvalid':
      return new ServiceError('INVALID_ARGUMENT', 'the membership cannot be changed so');
    case 'notVoter':
      return new ServiceError('INVALID_ARGUMENT', 'only a voter can lead the range');
    default:
      return unreachable(refused);
  }
}

/** The approximate number of a command's bytes in the log: for bounds, not for accounting. */
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
