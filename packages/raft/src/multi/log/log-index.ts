/**
 * The index of what the log must keep: for each group, the segments with its live entries and its latest state.
 *
 * X1. An entry is live if its index is above the group's start and no later record truncated it; its newest copy
 *     counts. A segment may be removed when it holds no live entry and no group's latest state.
 * X2. The index follows the order of the records in the log: it is changed when a record is placed in a frame.
 * X3. Reading the frames of a segment from the run's offset on yields the entries of the run in order, each before any
 *     other form of it: records are joined in a run only if they followed each other like that. The first frame may
 *     contain an older form of them in an earlier record.
 * X4. `RUN_SPAN_BYTES` bounds how much a read must search, unless the group has hardly any entries there. The memory of
 *     the index is bounded by one run per `RUN_BYTES_MIN` of live entries, and one per group and segment.
 */
import type { HardState, LogPosition } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import type { LogRecord, RecordHead } from './record-codec.ts';

/**
 * A run that spans more of its segment than this ends, once it holds enough of its group to be worth its place (X4).
 */
const RUN_SPAN_BYTES = 256 * 1024;
const RUN_BYTES_MIN = 1024;
const RUN_BYTES_MAX = 64 * 1024;
/** The approximate bytes of an entry beside its data. */
const ENTRY_OVERHEAD_BYTES = 5;
const NO_SEGMENT = -1;

/** The part of a record that the index needs. */
export interface PlacedRecord extends RecordHead {
  /** The index of its first entry; 0 if it has none. */
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** A frame. */
export interface FramePlace {
  /** The segment's generation. */
  readonly segment: number;
  /** The offset of the frame in the segment. */
  readonly offset: number;
}

/** The place of entries: `last` is the last index for which this place is known to be right (X3). */
export interface EntryPlace extends FramePlace {
  readonly last: number;
}

/** The newest copies of `first..last` are in one segment, in its frames from `offset` on. */
interface Run {
  first: number;
  last: number;
  readonly segment: number;
  readonly offset: number;
  /** Estimated when a part of the run is cut off. */
  bytes: number;
}

interface GroupState {
  hardState: HardState | undefined;
  hardStateSegment: number;
  start: LogPosition;
  /** The segment with the last record of `start`; `NO_SEGMENT` while it is the origin and needs no record. */
  startSegment: number;
  /** Sorted, disjoint. */
  runs: Run[];
}

export class LogIndex {
  readonly #groups = new Map<GroupId, GroupState>();
  readonly #liveBytes = new Map<number, number>();
  /** Groups that may have something in a segment. */
  readonly #members = new Map<number, Set<GroupId>>();
  /** Groups whose start moved since it was last written. */
  readonly #startDirty = new Set<GroupId>();

  // ------------------------------------------------------------------------------------------ changes

  /** Follows a record that is placed in a frame. */
  place(record: PlacedRecord, place: FramePlace): void {
    if (record.removed === true) this.remove(record.groupId);
    else this.#placeIn(record, place);
  }

  /** Entries up to `position` are covered elsewhere. Written with the next frame. */
  compact(groupId: GroupId, position: LogPosition): void {
    const state = this.#groups.get(groupId);
    if (state === undefined || position.index <= state.start.index) return;
    state.start = position;
    this.#cut(state, 0, position.index);
    this.#startDirty.add(groupId);
  }

  remove(groupId: GroupId): void {
    const state = this.#groups.get(groupId);
    if (state === undefined) return;
    this.#cut(state, 0, Number.POSITIVE_INFINITY);
    this.#groups.delete(groupId);
    this.#startDirty.delete(groupId);
  }

  dropSegment(segment: number): void {
    this.#liveBytes.delete(segment);
    this.#members.delete(segment);
  }

  // ------------------------------------------------------------------------------------------ questions

  get runCount(): number {
    let count = 0;
    for (const { runs } of this.#groups.values()) count += runs.length;
    return count;
  }

  has(groupId: GroupId): boolean {
    return this.#groups.has(groupId);
  }

  /** Bytes of live entries in a segment; exactly 0 when there is none. */
  liveBytes(segment: number): number {
    return this.#liveBytes.get(segment) ?? 0;
  }

  totalLiveBytes(): number {
    let sum = 0;
    for (const bytes of this.#liveBytes.values()) sum += bytes;
    return sum;
  }

  /** Whether the newest copy of a live entry lies in `segment`. */
  isLiveIn(groupId: GroupId, index: number, segment: number): boolean {
    return this.#runOf(groupId, index)?.segment === segment;
  }

  /** Where the newest copy of a live entry lies. */
  placeOf(groupId: GroupId, index: number): EntryPlace | undefined {
    const run = this.#runOf(groupId, index);
    return run && { segment: run.segment, offset: run.offset, last: run.last };
  }

  /** Bytes of a group's live entries. */
  groupBytes(groupId: GroupId): number {
    let bytes = 0;
    for (const run of this.#groups.get(groupId)?.runs ?? []) bytes += run.bytes;
    return bytes;
  }

  /** Records that repeat what only `segment` says about whole groups. */
  statesIn(segment: number): LogRecord[] {
    const records: LogRecord[] = [];
    for (const groupId of this.#members.get(segment) ?? []) {
      const state = this.#groups.get(groupId);
      if (state === undefined) continue;
      if (state.hardStateSegment !== segment && state.startSegment !== segment) continue;
      records.push({ groupId, hardState: state.hardState, compacted: state.start, entries: [] });
    }
    return records;
  }

  /** Records of the starts that moved and are not written yet. */
  unwrittenStarts(): LogRecord[] {
    return [...this.#startDirty].flatMap((groupId) => {
      const state = this.#groups.get(groupId);
      return state === undefined ? [] : [{ groupId, compacted: state.start, entries: [] }];
    });
  }

  get hasUnwrittenStarts(): boolean {
    return this.#startDirty.size > 0;
  }

  // ------------------------------------------------------------------------------------------ helpers

  #runOf(groupId: GroupId, index: number): Run | undefined {
    const runs = this.#groups.get(groupId)?.runs ?? [];
    let [low, high] = [0, runs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((runs[middle]?.last ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    const run = runs[low];
    return run !== undefined && run.first <= index ? run : undefined;
  }

  #placeIn(record: PlacedRecord, { segment, offset }: FramePlace): void {
    const state = this.#stateOf(record.groupId);
    this.#join(segment, record.groupId);
    if (record.hardState !== undefined) {
      state.hardState = record.hardState;
      state.hardStateSegment = segment;
    }
    if (record.restartAt !== undefined) this.#cut(state, 0, Number.POSITIVE_INFINITY);
    const start = record.restartAt ?? record.compacted;
    if (start !== undefined && (record.restartAt !== undefined || start.index >= state.start.index)) {
      state.start = start;
      state.startSegment = segment;
      this.#cut(state, 0, start.index);
      this.#startDirty.delete(record.groupId);
    }
    const { first, last } = record;
    if (first === 0) return;
    const bytes = record.bytes + (last - first + 1) * ENTRY_OVERHEAD_BYTES;
    const replaced = this.#cut(state, first, record.moved === true ? last : Number.POSITIVE_INFINITY);
    this.#put(state, { first, last, segment, offset, bytes }, !replaced);
  }

  #stateOf(groupId: GroupId): GroupState {
    let state = this.#groups.get(groupId);
    if (state === undefined) {
      state = {
        hardState: undefined,
        hardStateSegment: NO_SEGMENT,
        start: { index: 0, term: 0 },
        startSegment: NO_SEGMENT,
        runs: [],
      };
      this.#groups.set(groupId, state);
    }
    return state;
  }

  #join(segment: number, groupId: GroupId): void {
    const members = this.#members.get(segment);
    if (members === undefined) this.#members.set(segment, new Set([groupId]));
    else members.add(groupId);
  }

  /** `follows`: the record replaced nothing, so it may extend a run that ends just before it (X3). */
  #put(state: GroupState, run: Run, follows: boolean): void {
    if (run.first <= state.start.index) {
      if (run.last <= state.start.index) return;
      run.bytes = part(run, state.start.index + 1, run.last);
      run.first = state.start.index + 1;
    }
    this.#addLive(run.segment, run.bytes);
    const tail = state.runs.at(-1);
    if (tail === undefined || tail.last < run.first) {
      if (follows && tail !== undefined && goesOn(tail, run)) {
        tail.last = run.last;
        tail.bytes += run.bytes;
      } else {
        state.runs.push(run);
      }
      return;
    }
    state.runs.splice(
      state.runs.findIndex((other) => other.first > run.last),
      0,
      run,
    );
  }

  /** Forgets the place of `first..last`. Returns false if no place of them was known. */
  #cut(state: GroupState, first: number, last: number): boolean {
    const tail = state.runs.at(-1);
    if (tail === undefined || tail.last < first) return false;
    const kept: Run[] = [];
    for (const run of state.runs) {
      if (run.last < first || run.first > last) {
        kept.push(run);
        continue;
      }
      this.#addLive(run.segment, -run.bytes);
      const sides = [
        { ...run, last: Math.min(run.last, first - 1) },
        { ...run, first: Math.max(run.first, last + 1) },
      ];
      for (const side of sides) {
        if (side.first > side.last) continue;
        side.bytes = part(run, side.first, side.last);
        this.#addLive(side.segment, side.bytes);
        kept.push(side);
      }
    }
    state.runs = kept;
    return true;
  }

  #addLive(segment: number, bytes: number): void {
    this.#liveBytes.set(segment, (this.#liveBytes.get(segment) ?? 0) + bytes);
  }
}

/** Whether `next` may become part of `run`. (X3, X4) */
function goesOn(run: Run, next: Run): boolean {
  if (run.segment !== next.segment || run.last + 1 !== next.first) return false;
  const wide = next.offset - run.offset >= RUN_SPAN_BYTES;
  return run.bytes < (wide ? RUN_BYTES_MIN : RUN_BYTES_MAX);
}

/** The index's part of a record that is about to be written. */
export function placedRecord(record: LogRecord): PlacedRecord {
  const { groupId, hardState, restartAt, compacted, removed, moved, entries } = record;
  let bytes = 0;
  for (const entry of entries) bytes += entry.data.length;
  const first = entries[0]?.index ?? 0;
  const last = first + Math.max(0, entries.length - 1);
  return { groupId, hardState, restartAt, compacted, removed, moved, first, last, bytes };
}

/** The share of a run's bytes that `first..last` takes: at least 1 per entry, so it is 0 only for no entries. */
function part(run: Run, first: number, last: number): number {
  const count = last - first + 1;
  return Math.max(count, Math.round((run.bytes * count) / (run.last - run.first + 1)));
}
