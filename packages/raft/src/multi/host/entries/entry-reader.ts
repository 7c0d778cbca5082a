/**
 * Reads entries back that left memory, for all groups of a node.
 *
 * Q1. So many reads are under way at a time as the option says; others wait in the order in which they came. A core asks
 *     for one at a time for each reader, so that the queue is bounded by the replicas that the node's groups have.
 * Q2. Nothing else waits for a read: neither the turn, nor other groups, nor other followers of the same group.
 * Q3. A read that fails is damage, or a broken disk: the host stops.
 */
import type { Entry, EntryRead } from '../../../core/types.ts';
import type { GroupId, GroupLog } from '../../ports.ts';
import type { HostStats } from '../stats.ts';

/** Whose entries they are. */
export interface EntryOwner {
  readonly groupId: GroupId;
  /** Throws when entries that must be there did not come. */
  entriesRead(read: EntryRead, entries: readonly Entry[]): void;
}

interface Waiting {
  readonly owner: EntryOwner;
  readonly read: EntryRead;
}

export class EntryReader {
  readonly #log: GroupLog;
  readonly #readsMax: number;
  readonly #stats: HostStats;
  readonly #guard: (work: () => void) => void;
  readonly #fail: (error: unknown) => void;
  #queue: Waiting[] = [];
  #head = 0;
  #underWay = 0;

  constructor(parts: {
    readonly log: GroupLog;
    readonly readsMax: number;
    readonly stats: HostStats;
    /** Runs work unless the host has stopped; what it throws stops the host. */
    readonly guard: (work: () => void) => void;
    readonly fail: (error: unknown) => void;
  }) {
    this.#log = parts.log;
    this.#readsMax = parts.readsMax;
    this.#stats = parts.stats;
    this.#guard = parts.guard;
    this.#fail = parts.fail;
  }

  read(owner: EntryOwner, read: EntryRead): void {
    this.#queue.push({ owner, read });
    this.#start();
  }

  #start(): void {
    while (this.#underWay < this.#readsMax && this.#head < this.#queue.length) {
      const { owner, read } = this.#queue[this.#head++] as Waiting;
      if (this.#head === this.#queue.length) {
        this.#queue = [];
        this.#head = 0;
      }
      this.#underWay++;
      this.#stats.entryReads++;
      const { from, to, maxBytes } = read;
      this.#log.read({ groupId: owner.groupId, from, to, maxBytes }).then(
        (entries) => this.#finish(owner, read, entries),
        (error: unknown) => this.#guard(() => this.#fail(error)),
      );
    }
  }

  #finish(owner: EntryOwner, read: EntryRead, entries: readonly Entry[]): void {
    this.#underWay--;
    this.#stats.entriesReadBack += entries.length;
    this.#guard(() => {
      owner.entriesRead(read, entries);
      this.#start();
    });
  }
}
