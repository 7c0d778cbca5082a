/**
 * The log of one replica: the term of every entry since compaction, a window of recent entries, and how far they are
 * durable. Entries before the window are only on disk and are read back when needed (`entry-reads.ts`).
 *
 * G1. `start` is the position before the first entry kept. Its term stays known, so that a follower at that position
 *     can be served without a snapshot.
 * G2. Disk equals memory as of the last persisted mark. A truncation therefore clips the durable index and every open
 *     mark: a mark counts only for entries that the log has held ever since the mark was opened. This also covers an
 *     entry that is truncated and later appended again with the same (index, term), which etcd-io/raft calls the ABA
 *     problem (newStorageAppendRespMsg).
 * G3. Entries are immutable, and shared with messages, persistence and apply.
 * G4. The window ends with the last entry, and only durable entries leave it: an entry that is not in memory is on
 *     disk.
 */
import { assert } from '@remora/base';
import { TermRuns } from './term-runs.ts';
import type { Entry, LogOutline, LogPosition } from './types.ts';

/** The size added to an entry's data in every limit in bytes, so that empty entries are not free. */
export const ENTRY_OVERHEAD_BYTES = 16;
/** An entry's memory beside its data: its object, and that of its data (measured with Node 20: 150 to 200). */
export const ENTRY_MEMORY_BYTES = 192;

export function entryBytes(entry: Entry): number {
  return entry.data.length + ENTRY_OVERHEAD_BYTES;
}

/** Returns as many of `entries` as fit into `maxBytes`, and at least one. */
export function takeBytes(entries: readonly Entry[], maxBytes: number): readonly Entry[] {
  let bytes = 0;
  const end = entries.findIndex((entry, i) => {
    bytes += entryBytes(entry);
    return bytes > maxBytes && i > 0;
  });
  return end === -1 ? entries : entries.slice(0, end);
}

/** The outline of a log with exactly these entries, which must be contiguous. */
export function outlineOf(start: LogPosition, entries: readonly Entry[]): LogOutline {
  const terms: LogPosition[] = [];
  const confs: number[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (terms.at(-1)?.term !== entry.term) terms.push({ index: entry.index, term: entry.term });
    if (entry.type === 'conf') confs.push(entry.index);
    bytes += entryBytes(entry);
  }
  return { terms, confs, lastIndex: start.index + entries.length, bytes };
}

const NO_ENTRIES: readonly Entry[] = [];
/** Replaces an entry that has left the window. */
const GONE: Entry = { index: 0, term: 0, type: 'normal', data: new Uint8Array(0) };
/** With a shorter dead part of the array, moving the rest is not worthwhile. */
const TRIM_MIN = 256;

export class RaftLog {
  #startIndex: number;
  #startTerm: number;
  /** The terms of the entries from `start` on. */
  readonly #terms: TermRuns;
  /** Indexes of the `conf` entries from `start` on, ascending. */
  readonly #confs: number[];
  /** `#entries[i]` has index `#base + 1 + i`; those up to `#windowStart` are `GONE`. */
  #entries: Entry[];
  #base: number;
  #windowStart: number;
  /** `entryBytes` of the window, and an estimate for the entries before it. */
  #windowBytes = 0;
  #bytesBefore = 0;
  /** Everything up to here is durable. */
  #stable: number;
  /** Everything up to here was handed out to be persisted. */
  #handedOut: number;
  /** For each open mark, oldest first: the last index that is durable once the mark is persisted (G2). */
  readonly #marks: number[] = [];
  #truncations = 0;
  /** The last run of entries cut for a message: followers at the same position share one array. */
  #run: { readonly from: number; readonly entries: readonly Entry[] } = { from: 0, entries: NO_ENTRIES };

  /** `entries` are the last ones of the log that `outline` describes; without an outline they are all. */
  constructor(start: LogPosition, entries: readonly Entry[], outline: LogOutline = outlineOf(start, entries)) {
    this.#startIndex = start.index;
    this.#startTerm = start.term;
    this.#terms = new TermRuns(outline.terms);
    this.#confs = outline.confs.slice();
    this.#entries = entries.slice();
    this.#windowStart = outline.lastIndex - entries.length;
    this.#base = this.#windowStart;
    this.#stable = outline.lastIndex;
    this.#handedOut = outline.lastIndex;
    for (const entry of entries) this.#windowBytes += entryBytes(entry);
    this.#bytesBefore = Math.max(0, outline.bytes - this.#windowBytes);
    this.#checkRecovered(entries, outline);
  }

  #checkRecovered(entries: readonly Entry[], { terms }: LogOutline): void {
    const first = terms[0];
    assert(
      this.#windowStart >= this.#startIndex &&
        (first === undefined ? this.lastIndex === this.#startIndex : first.index === this.firstIndex) &&
        (first?.term ?? this.#startTerm) >= this.#startTerm,
      'G: recovered entries are contiguous',
    );
    let index = this.#windowStart;
    for (const entry of entries) {
      index++;
      assert(entry.index === index && this.matches(index, entry.term), 'G: recovered entries are contiguous');
    }
  }

  get startIndex(): number {
    return this.#startIndex;
  }
  get firstIndex(): number {
    return this.#startIndex + 1;
  }
  get lastIndex(): number {
    return this.#base + this.#entries.length;
  }
  get lastTerm(): number {
    return this.#terms.lastTerm ?? this.#startTerm;
  }
  get stableIndex(): number {
    return this.#stable;
  }
  /** Entries behind this index are in memory, others are not (G4). */
  get windowStart(): number {
    return this.#windowStart;
  }
  /** The memory of the entries in the window, in bytes. */
  get memoryBytes(): number {
    const count = this.lastIndex - this.#windowStart;
    return this.#windowBytes + count * (ENTRY_MEMORY_BYTES - ENTRY_OVERHEAD_BYTES);
  }
  /** Grows whenever entries at the end are truncated: entries read from disk before may be of another branch. */
  get truncations(): number {
    return this.#truncations;
  }
  /** Whether entries wait to be handed out for persistence. */
  get hasUnpersisted(): boolean {
    return this.#handedOut < this.lastIndex;
  }

  /** The term at `index`, in memory or not; undefined when it is compacted or past the end. */
  term(index: number): number | undefined {
    if (index === this.#startIndex) return this.#startTerm;
    return index < this.#startIndex || index > this.lastIndex ? undefined : this.#terms.at(index);
  }

  matches(index: number, term: number): boolean {
    return this.term(index) === term;
  }

  /** Whether a `conf` entry lies in `after + 1 .. upTo`, in memory or not. */
  hasConf(after: number, upTo: number): boolean {
    for (let i = this.#confs.length - 1; i >= 0; i--) {
      const index = this.#confs[i] ?? 0;
      if (index <= after) return false;
      if (index <= upTo) return true;
    }
    return false;
  }

  /** Whether a log that ends at the given position holds all that this one may have committed (dissertation §3.6.1). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /** Appends a leader's own entry. */
  append(entry: Entry): void {
    assert(entry.index === this.lastIndex + 1, 'G: entries are appended in order');
    this.#entries.push(entry);
    this.#windowBytes += entryBytes(entry);
    this.#terms.push(entry.index, entry.term);
    if (entry.type === 'conf') this.#confs.push(entry.index);
  }

  /**
   * Takes over entries that follow a matching position: skips those already present, truncates at the first conflict.
   * `commit` protects what must never be truncated.
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
    if (last <= this.#windowStart) {
      this.#scaleBytesBefore(this.#startIndex, last);
      this.#emptyWindow(last);
    } else {
      for (let i = last - this.#base; i < this.#entries.length; i++) {
        this.#windowBytes -= entryBytes(this.#entries[i] as Entry);
      }
      this.#entries.length = last - this.#base;
    }
    this.#terms.cutFrom(last + 1);
    while ((this.#confs.at(-1) ?? 0) > last) this.#confs.pop();
    this.#clipDurable(last);
  }

  /** Only `after + 1 .. last` is left of the entries before the window. */
  #scaleBytesBefore(after: number, last: number): void {
    const before = this.#windowStart - this.#startIndex;
    if (before > 0) this.#bytesBefore = (this.#bytesBefore * Math.max(0, last - after)) / before;
  }

  #emptyWindow(last: number): void {
    this.#entries = [];
    this.#base = last;
    this.#windowStart = last;
    this.#windowBytes = 0;
  }

  #clipDurable(last: number): void {
    this.#truncations++;
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
    const from = Math.min(index, this.lastIndex);
    if (from < this.#startIndex) return { index: from, term: 0 };
    const at = from > this.#startIndex ? this.#terms.lastAtMost(from, term) : from;
    if (at > this.#startIndex) return { index: at, term: this.#terms.at(at) ?? 0 };
    if (this.#startIndex === 0 || this.#startTerm <= term) return { index: this.#startIndex, term: this.#startTerm };
    return { index: this.#startIndex - 1, term: 0 };
  }

  /**
   * Entries from `from` to at most `to`, up to `maxBytes` but at least one. Shared: not to be changed. They must be in
   * memory.
   */
  slice(from: number, to: number, maxBytes: number): readonly Entry[] {
    const begin = from - this.#base - 1;
    const limit = Math.min(to, this.lastIndex) - this.#base;
    if (begin >= limit) return NO_ENTRIES;
    assert(from > this.#windowStart, 'G4: compacted or evicted entries are not read');
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

  /** Sum of bytes from `from` to the end; estimated for what is not in memory. */
  bytesFrom(from: number): number {
    if (from <= this.#windowStart) {
      const before = this.#windowStart - this.#startIndex;
      const left = this.#windowStart - Math.max(from - 1, this.#startIndex);
      return this.#windowBytes + Math.round((this.#bytesBefore * left) / before || 0);
    }
    let bytes = 0;
    for (let i = from - this.#base - 1; i < this.#entries.length; i++) bytes += entryBytes(this.#entries[i] as Entry);
    return bytes;
  }

  /** Opens the next mark: hands out everything not yet handed out to be persisted. */
  openMark(): readonly Entry[] {
    const entries = this.hasUnpersisted ? this.#entries.slice(this.#handedOut - this.#base) : NO_ENTRIES;
    this.#handedOut = this.lastIndex;
    this.#marks.push(this.lastIndex);
    return entries;
  }

  /** The oldest open mark is durable. */
  closeMark(): void {
    const last = this.#marks.shift();
    assert(last !== undefined, 'G: only open marks are reported');
    this.#stable = Math.max(this.#stable, last); // G2: already clipped
  }

  /** Drops the entries up to `index` from memory, as far as they are durable; their terms stay known (G4). */
  evictTo(index: number): void {
    const last = Math.min(index, this.#stable);
    if (last > this.#windowStart) this.#bytesBefore += this.#leaveWindow(last);
  }

  /** Takes the entries up to `last` out of the window and returns their number of bytes. */
  #leaveWindow(last: number): number {
    let bytes = 0;
    const end = last - this.#base;
    for (let i = this.#windowStart - this.#base; i < end; i++) {
      bytes += entryBytes(this.#entries[i] as Entry);
      this.#entries[i] = GONE;
    }
    this.#windowBytes -= bytes;
    this.#windowStart = last;
    if (end === this.#entries.length || (end >= TRIM_MIN && end * 2 >= this.#entries.length)) {
      this.#entries = this.#entries.slice(end);
      this.#base = last;
    }
    this.#run = { from: 0, entries: NO_ENTRIES };
    return bytes;
  }

  /** Drops entries up to `index`, keeping its term (G1). */
  compactTo(index: number): void {
    if (index <= this.#startIndex) return;
    const term = this.term(index);
    assert(
      term !== undefined && index <= this.#handedOut,
      'G1: compaction ends at an entry of the log that was handed out for persistence',
    );
    if (index > this.#windowStart) {
      this.#leaveWindow(index);
      this.#bytesBefore = 0;
    } else {
      this.#scaleBytesBefore(index, this.#windowStart);
    }
    this.#terms.cutTo(index, this.lastIndex);
    let confs = 0;
    while ((this.#confs[confs] ?? Number.POSITIVE_INFINITY) <= index) confs++;
    if (confs > 0) this.#confs.splice(0, confs);
    this.#startIndex = index;
    this.#startTerm = term;
  }

  /** Forgets everything and starts again after `start`, which is durable outside the log. */
  restart(start: LogPosition): void {
    this.#emptyWindow(start.index);
    this.#bytesBefore = 0;
    this.#terms.cutFrom(0);
    this.#confs.length = 0;
    this.#startIndex = start.index;
    this.#startTerm = start.term;
    this.#clipDurable(start.index);
    this.#stable = start.index;
    this.#handedOut = start.index;
  }
}
