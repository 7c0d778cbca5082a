/**
 * What the log must keep: for each group, in which segments its live entries and its latest state lie.
 *
 * X1. An entry is live when its index is above the group's start and nothing later truncated it; its newest copy
 *     counts. A segment may go when no live entry and no group's latest state lies in it.
 * X2. The index follows the order of the records in the log: it is changed when a record is placed in a frame.
 */
import type { HardState, LogPosition } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import type { LogRecord } from './record-codec.ts';

/** Bytes that an entry takes beside its data, roughly. */
const ENTRY_OVERHEAD_BYTES = 5;
const NO_SEGMENT = -1;

/** Indexes `first..last` have their newest copy in one segment. */
interface Run {
  first: number;
  last: number;
  segment: number;
  /** Estimated when a part of the run is cut off. */
  bytes: number;
}

interface GroupState {
  hardState: HardState | undefined;
  hardStateSegment: number;
  start: LogPosition;
  /** Where `start` was last written; `NO_SEGMENT` while it is the origin and needs no record. */
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

  /** Follows a record that is placed in `segment`. */
  place(record: LogRecord, segment: number): void {
    if (record.removed === true) this.remove(record.groupId);
    else this.#placeIn(record, segment);
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
    const runs = this.#groups.get(groupId)?.runs ?? [];
    return runs.some((run) => run.segment === segment && run.first <= index && index <= run.last);
  }

  /** Records that say again what only `segment` says about groups as such. */
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

  #placeIn(record: LogRecord, segment: number): void {
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
    const first = record.entries[0]?.index;
    if (first === undefined) return;
    const last = first + record.entries.length - 1;
    const bytes = record.entries.reduce((sum, entry) => sum + entry.data.length + ENTRY_OVERHEAD_BYTES, 0);
    this.#cut(state, first, record.moved === true ? last : Number.POSITIVE_INFINITY);
    this.#put(state, { first, last, segment, bytes });
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

  #put(state: GroupState, run: Run): void {
    if (run.first <= state.start.index) {
      if (run.last <= state.start.index) return;
      run.bytes = part(run, state.start.index + 1, run.last);
      run.first = state.start.index + 1;
    }
    this.#addLive(run.segment, run.bytes);
    const tail = state.runs.at(-1);
    if (tail === undefined || tail.last < run.first) {
      if (tail !== undefined && tail.segment === run.segment && tail.last + 1 === run.first) {
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

  /** Forgets where `first..last` lie. */
  #cut(state: GroupState, first: number, last: number): void {
    const tail = state.runs.at(-1);
    if (tail === undefined || tail.last < first) return;
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
  }

  #addLive(segment: number, bytes: number): void {
    this.#liveBytes.set(segment, (this.#liveBytes.get(segment) ?? 0) + bytes);
  }
}

/** The share of a run's bytes that `first..last` of it take: at least 1 per entry, so that it is 0 for none only. */
function part(run: Run, first: number, last: number): number {
  const count = last - first + 1;
  return Math.max(count, Math.round((run.bytes * count) / (run.last - run.first + 1)));
}
