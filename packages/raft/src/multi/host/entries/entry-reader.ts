/**
 * Reads back entries that have left memory, for all groups of a node.
 *
 * Q1. At most as many reads as the option allows run at a time; others wait in the order of arrival. A core requests
 *     one read at a time for each reader, so the number of replicas of the node's groups bounds the queue.
 * Q2. Only the reader waits for a read: not the turn, other groups, or other followers of the same group.
 * Q3. The more reads wait, the less each reads: groups that lag together then stay close together in the log, where
 *     frames read for one of them serve the others too (log/frame-cache.ts).
 * Q4. A failed read means damage or a broken disk: the host stops.
 */
import type { Entry, EntryRead } from '../../../core/types.ts';
import type { GroupId, GroupLog } from '../../ports.ts';
import type { HostStats } from '../stats.ts';

/** The group that reads entries. */
export interface EntryOwner {
  readonly groupId: GroupId;
  /** Throws if entries that must exist did not come. */
  entriesRead(read: EntryRead, entries: readonly Entry[]): void;
}

interface Waiting {
  readonly owner: EntryOwner;
  readonly read: EntryRead;
}

/** The total that all waiting readers request together, once each (Q3): well below what the log caches. */
const ROUND_BYTES = 4 * 1024 * 1024;
const READ_BYTES_MIN = 4 * 1024;
/**
 * The assumed number of waiting readers before it is known: if the first few readers got far ahead, their frames would
 * serve nobody else.
 */
const CROWD_AT_FIRST = 64;
/** How slowly the estimate falls: by one for this many reads. How many wait at a given moment is random. */
const READS_PER_CROWD_LOSS = 8;

export class EntryReader {
  readonly #log: Pick<GroupLog, 'read'>;
  readonly #readsMax: number;
  readonly #stats: HostStats;
  readonly #guard: (work: () => void) => void;
  readonly #fail: (error: unknown) => void;
  #queue: Waiting[] = [];
  #head = 0;
  #inFlight = 0;
  /** How many readers wait, over a longer time. */
  #crowd = CROWD_AT_FIRST;

  constructor(parts: {
    readonly log: Pick<GroupLog, 'read'>;
    readonly readsMax: number;
    readonly stats: HostStats;
    /** Runs work unless the host has stopped; an exception stops the host. */
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
    while (this.#inFlight < this.#readsMax && this.#head < this.#queue.length) {
      const waiting = this.#queue.length - this.#head + this.#inFlight;
      this.#crowd = Math.max(waiting, this.#crowd - 1 / READS_PER_CROWD_LOSS);
      const shareBytes = Math.max(READ_BYTES_MIN, Math.floor(ROUND_BYTES / this.#crowd));
      const { owner, read } = this.#queue[this.#head++] as Waiting;
      if (2 * this.#head >= this.#queue.length) {
        this.#queue = this.#queue.slice(this.#head);
        this.#head = 0;
      }
      this.#inFlight++;
      this.#stats.entryReads++;
      const { from, to } = read;
      const maxBytes = Math.min(read.maxBytes, shareBytes);
      this.#log.read({ groupId: owner.groupId, from, to, maxBytes }).then(
        (entries) => this.#finish(owner, read, entries),
        (error: unknown) => this.#guard(() => this.#fail(error)),
      );
    }
  }

  #finish(owner: EntryOwner, read: EntryRead, entries: readonly Entry[]): void {
    this.#inFlight--;
    this.#stats.entriesReadBack += entries.length;
    this.#guard(() => {
      owner.entriesRead(read, entries);
      this.#start();
    });
  }
}
