/**
 * The log of one replica as far as it is kept in memory: the entries since compaction, and how far they are durable.
 *
 * G1. `start` is the position before the first entry kept; its term stays known, so that a follower that is there
 *     can be served without a snapshot.
 * G2. Disk equals memory as of the last persisted mark. A truncation therefore clips the durable index and every
 *     mark still under way: what a mark names counts only as far as the log has held it ever since. This also covers
 *     an entry that is truncated and later appended again with the same (index, term) (etcd-io/raft,
 *     newStorageAppendRespMsg, calls it the ABA problem).
 * G3. Entries are immutable and shared: with messages, with persistence, with apply.
 */
import { assert } from '@remora/base';
import type { Entry, LogPosition } from './types.ts';

/** What an entry counts beside its data against every limit in bytes, so that empty entries are not free. */
export const ENTRY_OVERHEAD_BYTES = 16;

export function entryBytes(entry: Entry): number {
  return entry.data.length + ENTRY_OVERHEAD_BYTES;
}

const NO_ENTRIES: readonly Entry[] = [];

export class RaftLog {
  #startIndex: number;
  #startTerm: number;
  /** `#entries[i]` has index `#startIndex + 1 + i`. */
  #entries: Entry[];
  /** Everything up to here is durable. */
  #stable: number;
  /** Everything up to here was handed out to be persisted. */
  #handedOut: number;
  /** Per mark under way, oldest first: the last index that is durable once it is persisted (G2). */
  readonly #marks: number[] = [];
  /** The last run of entries cut for a message: followers at one place share one array. */
  #run: { readonly from: number; readonly entries: readonly Entry[] } = { from: 0, entries: NO_ENTRIES };

  constructor(start: LogPosition, entries: readonly Entry[]) {
    this.#startIndex = start.index;
    this.#startTerm = start.term;
    this.#entries = entries.slice();
    let previous: LogPosition = start;
    for (const entry of entries) {
      assert(entry.index === previous.index + 1 && entry.term >= previous.term, 'G: recovered entries are contiguous');
      previous = entry;
    }
    this.#stable = previous.index;
    this.#handedOut = previous.index;
  }

  get startIndex(): number {
    return this.#startIndex;
  }
  get firstIndex(): number {
    return this.#startIndex + 1;
  }
  get lastIndex(): number {
    return this.#startIndex + this.#entries.length;
  }
  get lastTerm(): number {
    return this.#entries.at(-1)?.term ?? this.#startTerm;
  }
  get stableIndex(): number {
    return this.#stable;
  }
  /** Whether entries wait to be handed out for persistence. */
  get hasUnpersisted(): boolean {
    return this.#handedOut < this.lastIndex;
  }

  /** The term at `index`; undefined when it is compacted or past the end. */
  term(index: number): number | undefined {
    if (index === this.#startIndex) return this.#startTerm;
    return this.#entries[index - this.#startIndex - 1]?.term;
  }

  matches(index: number, term: number): boolean {
    return this.term(index) === term;
  }

  entry(index: number): Entry | undefined {
    return this.#entries[index - this.#startIndex - 1];
  }

  /** Whether a log that ends at the given position holds all that this one may have committed (dissertation §3.6.1). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /** Appends a leader's own entry. */
  append(entry: Entry): void {
    assert(entry.index === this.lastIndex + 1, 'G: entries are appended in order');
    this.#entries.push(entry);
  }

  /**
   * Takes over entries that follow a position known to match: skips those already held, truncates at the first
   * conflict. `commit` guards what must never be truncated.
   */
  accept(entries: readonly Entry[], commit: number): void {
    let skip = 0;
    while (skip < entries.length) {
      const entry = entries[skip] as Entry;
      if (!this.matches(entry.index, entry.term)) break;
      skip++;
    }
    const first = entries[skip];
    if (first === undefined) return;
    if (first.index <= this.lastIndex) {
      assert(first.index > commit, 'G: a committed entry is never truncated');
      this.#truncateTo(first.index - 1);
    }
    for (let i = skip; i < entries.length; i++) this.append(entries[i] as Entry);
  }

  #truncateTo(last: number): void {
    this.#entries.length = last - this.#startIndex;
    this.#clipDurable(last);
  }

  #clipDurable(last: number): void {
    this.#stable = Math.min(this.#stable, last);
    this.#handedOut = Math.min(this.#handedOut, last);
    for (let i = 0; i < this.#marks.length; i++) this.#marks[i] = Math.min(this.#marks[i] ?? 0, last);
    this.#run = { from: 0, entries: NO_ENTRIES };
  }

  /**
   * The largest index at or below `index` whose term here is at most `term`: the only place, from a rejected
   * position on backwards, where the two logs can match. Term 0 stands for "unknown, compacted away"
   * (etcd-io/raft, findConflictByTerm).
   */
  findConflictByTerm(index: number, term: number): LogPosition {
    let i = Math.min(index, this.lastIndex);
    for (; i > 0; i--) {
      const here = this.term(i);
      if (here === undefined) return { index: i, term: 0 };
      if (here <= term) return { index: i, term: here };
    }
    return { index: 0, term: 0 };
  }

  /** Entries from `from` to at most `to`, up to `maxBytes` but at least one. Shared: not to be changed. */
  slice(from: number, to: number, maxBytes: number): readonly Entry[] {
    const begin = from - this.#startIndex - 1;
    const limit = Math.min(to, this.lastIndex) - this.#startIndex;
    if (begin >= limit) return NO_ENTRIES;
    assert(begin >= 0, 'G1: compacted entries are not read');
    let end = begin;
    let bytes = 0;
    while (end < limit) {
      bytes += entryBytes(this.#entries[end] as Entry);
      if (bytes > maxBytes && end > begin) break;
      end++;
    }
    const run = this.#run;
    if (run.from === from && run.entries.length === end - begin) return run.entries;
    const entries = this.#entries.slice(begin, end);
    this.#run = { from, entries };
    return entries;
  }

  /** Sum of bytes from `from` to the end, as far as it is in memory. */
  bytesFrom(from: number): number {
    let bytes = 0;
    for (let i = Math.max(0, from - this.#startIndex - 1); i < this.#entries.length; i++) {
      bytes += entryBytes(this.#entries[i] as Entry);
    }
    return bytes;
  }

  /** Opens the next mark: hands out everything not yet handed out for persistence. */
  openMark(): readonly Entry[] {
    const entries = this.hasUnpersisted ? this.#entries.slice(this.#handedOut - this.#startIndex) : NO_ENTRIES;
    this.#handedOut = this.lastIndex;
    this.#marks.push(this.lastIndex);
    return entries;
  }

  /** The oldest mark under way is durable. */
  closeMark(): void {
    const last = this.#marks.shift();
    assert(last !== undefined, 'G: only marks under way are reported');
    this.#stable = Math.max(this.#stable, last); // G2: already clipped
  }

  /** Drops entries up to `index`, keeping its term (G1). */
  compactTo(index: number): void {
    if (index <= this.#startIndex) return;
    const term = this.term(index);
    assert(term !== undefined, 'G1: compaction ends at an entry of the log');
    this.#entries = this.#entries.slice(index - this.#startIndex);
    this.#startIndex = index;
    this.#startTerm = term;
    this.#run = { from: 0, entries: NO_ENTRIES };
  }

  /** Forgets everything and begins again after `start`, which is durable outside the log. */
  restart(start: LogPosition): void {
    this.#entries = [];
    this.#startIndex = start.index;
    this.#startTerm = start.term;
    this.#clipDurable(start.index);
    this.#stable = start.index;
    this.#handedOut = start.index;
  }
}
