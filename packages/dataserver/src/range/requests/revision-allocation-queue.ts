import { ServiceError } from '@remora/base';
import type { RevisionBlock } from '@remora/protocol';
import type { Group } from '@remora/raft';
import type { RangeTimes } from '../../range-times.ts';
import type { Drawing, RevisionSource } from '../../revisions/revision-drawer.ts';
import type { PendingCommand } from './pending-command.ts';

export interface RevisionAllocationQueueDeps {
  readonly rangeId: number;
  readonly drawer: Pick<RevisionSource, 'want'>;
  /** The highest applied revision of this range. */
  readonly revision: () => number;
  /** `version` of the range's epoch. */
  readonly epochVersion: () => number;
  readonly rangeTimeMs: () => number;
  readonly group: () => Pick<Group, 'role' | 'term'>;
  readonly staleEpoch: () => ServiceError;
  readonly times?: Pick<RangeTimes, 'now' | 'gotRevisions'> | undefined;
  /** Proposes commands, each of which takes at most one revision of the block. */
  readonly propose: (queued: readonly PendingCommand[], block: RevisionBlock) => void;
}

/**
 * Commands of a range that the master numbers, which wait until there are revisions for their changes (design §8).
 *
 * B1. A block serves only commands that were queued before the request for it was sent. Another range may have received
 *     higher revisions since, and acknowledged them: a command that arrived after that must not get a lower one.
 * B2. A block serves only in the term in which it was requested. Another leader may have written in between, and have
 *     announced that the range is complete up to a revision above the block.
 * B3. The rest of a block is dropped: the next commands arrive later (B1).
 * B4. A command is proposed, or refused with nothing changed: when leadership is lost, when the epoch under which it
 *     was checked has passed, or when its deadline has.
 */
export class RevisionAllocationQueue implements Drawing {
  readonly #deps: RevisionAllocationQueueDeps;
  /** Commands that the next request covers. */
  #waiting: PendingCommand[] = [];
  /** Since when the first of them waits, and the first of the covered ones; 0: not measured. */
  #waitingMs = 0;
  #coveredMs = 0;
  /** Commands covered by the request in progress (B1), which was sent in this term (B2). */
  #covered: readonly PendingCommand[] = [];
  #requestedIn = 0;
  #epochVersion = 0;
  #bytes = 0;
  /** Called when the request in progress has ended, and its commands are proposed. */
  #settled: (() => void)[] = [];

  constructor(deps: RevisionAllocationQueueDeps) {
    this.#deps = deps;
  }

  get rangeId(): number {
    return this.#deps.rangeId;
  }

  get length(): number {
    return this.#waiting.length + this.#covered.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  some(which: (item: PendingCommand['item']) => boolean): boolean {
    return [this.#covered, this.#waiting].some((queued) => queued.some(({ item }) => which(item)));
  }

  add(queued: readonly PendingCommand[]): void {
    this.#checkEpoch();
    if (this.#waiting.length === 0) this.#waitingMs = this.#deps.times?.now() ?? 0;
    for (const command of queued) {
      this.#waiting.push(command);
      this.#bytes += command.bytes;
    }
    this.#deps.drawer.want(this);
  }

  /**
   * Calls `done` once no command waits any more for a block that was requested before this call; at once if none does.
   */
  whenSettled(done: () => void): void {
    if (this.#covered.length === 0) done();
    else this.#settled.push(done);
  }

  sending(): { readonly floor: number; readonly count: number } | undefined {
    this.#checkEpoch();
    this.#dropLate();
    if (this.#waiting.length === 0) return undefined;
    this.#covered = this.#waiting;
    this.#coveredMs = this.#waitingMs;
    this.#waiting = [];
    this.#requestedIn = this.#deps.group().term;
    return { floor: this.#deps.revision(), count: this.#covered.length };
  }

  answered(block: RevisionBlock): void {
    this.#checkEpoch();
    this.#measure();
    const covered = this.#covered;
    this.#covered = [];
    for (const { bytes } of covered) this.#bytes -= bytes;
    const { role, term } = this.#deps.group();
    if (role === 'leader' && term === this.#requestedIn) this.#propose(covered, block);
    else refuse(covered, new ServiceError('NOT_LEADER', 'leadership moved before the command was proposed'));
    this.#settle();
  }

  #measure(): void {
    const { times } = this.#deps;
    if (times !== undefined && this.#covered.length > 0) times.gotRevisions(times.now() - this.#coveredMs);
  }

  failed(): void {
    if (this.#covered.length > 0) this.#waitingMs = this.#coveredMs;
    this.#waiting = [...this.#covered, ...this.#waiting];
    this.#covered = [];
    this.#settle();
  }

  /** No waiting command is proposed (B4). A later answer finds no command (B2). */
  abandon(error: ServiceError): void {
    const all = [...this.#covered, ...this.#waiting];
    this.#covered = [];
    this.#waiting = [];
    this.#bytes = 0;
    refuse(all, error);
    this.#settle();
  }

  #propose(covered: readonly PendingCommand[], block: RevisionBlock): void {
    if (covered.length > 0) this.#deps.propose(covered, block);
  }

  #settle(): void {
    const settled = this.#settled;
    this.#settled = [];
    for (const done of settled) done();
  }

  /** B4. Commands that waited while the range was split or merged. */
  #checkEpoch(): void {
    const version = this.#deps.epochVersion();
    if (version === this.#epochVersion) return;
    this.#epochVersion = version;
    if (this.length > 0) this.abandon(this.#deps.staleEpoch());
  }

  /** B4. Nobody waits for their outcome any more, and apply would refuse them. */
  #dropLate(): void {
    const nowMs = this.#deps.rangeTimeMs();
    const late: PendingCommand[] = [];
    const inTime: PendingCommand[] = [];
    for (const command of this.#waiting) {
      const { deadlineMs } = command.item;
      (deadlineMs !== 0 && deadlineMs < nowMs ? late : inTime).push(command);
    }
    if (late.length === 0) return;
    this.#waiting = inTime;
    for (const { bytes } of late) this.#bytes -= bytes;
    const message = 'the deadline passed while the command waited for a revision from the master';
    refuse(late, new ServiceError('DEADLINE_EXCEEDED', message));
  }
}

function refuse(queued: readonly PendingCommand[], error: ServiceError): void {
  for (const command of queued) command.complete(error, undefined);
}
