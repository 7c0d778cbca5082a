import { assert } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import { outlineOf, takeBytes } from '../../../src/core/log.ts';
import type { Entry, HardState, LogPosition } from '../../../src/core/types.ts';
import type { EntryRange, GroupAppend, GroupId, GroupLog, RecoveredGroup } from '../../../src/multi/ports.ts';

interface LogState {
  hardState: HardState;
  start: LogPosition;
  entries: Entry[];
}

/** A log whose sync takes `syncMs` of the virtual clock; a crash loses what was not synced. Checks what it is given. */
export class BedLog implements GroupLog {
  readonly #clock: ManualClock;
  readonly durable = new Map<GroupId, LogState>();
  syncMs = 1;
  appendCalls = 0;
  groupsPerAppend: number[] = [];
  full = false;
  /** How long a read takes; it shows the log as it is then. */
  readMs = 1;
  readFailure: Error | undefined;
  /** Entries of each group that are handed out at start. */
  recentMax = Number.POSITIVE_INFINITY;
  #generation = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  recovered(): ReadonlyMap<GroupId, RecoveredGroup> {
    return new Map(
      [...this.durable].map(([id, { hardState, start, entries }]) => [
        id,
        {
          hardState,
          start,
          outline: outlineOf(start, entries),
          entries: entries.slice(Math.max(0, entries.length - this.recentMax)),
        },
      ]),
    );
  }

  forgetRecovered(): void {}

  append(batch: readonly GroupAppend[], done: () => void): void {
    this.appendCalls++;
    this.groupsPerAppend.push(batch.length);
    const generation = this.#generation;
    this.#clock.setTimer(this.syncMs, () => {
      if (generation !== this.#generation) return;
      for (const item of batch) this.#store(item);
      done();
    });
  }

  read({ groupId, from, to, maxBytes }: EntryRange): Promise<readonly Entry[]> {
    const generation = this.#generation;
    return new Promise((resolve, reject) => {
      this.#clock.setTimer(this.readMs, () => {
        if (generation !== this.#generation) return;
        if (this.readFailure !== undefined) return reject(this.readFailure);
        const state = this.durable.get(groupId);
        const start = state?.start.index ?? 0;
        if (state === undefined || from <= start) return resolve([]);
        resolve(takeBytes(state.entries.slice(from - start - 1, to - start), maxBytes));
      });
    });
  }

  compact(groupId: GroupId, position: LogPosition): void {
    const state = this.durable.get(groupId);
    if (state === undefined) return;
    const kept = state.entries.findIndex((entry) => entry.index > position.index);
    assert(
      state.entries.some((entry) => entry.index === position.index),
      'a log is compacted up to an entry it holds',
    );
    state.entries = kept === -1 ? [] : state.entries.slice(kept);
    state.start = position;
  }

  removeGroup(groupId: GroupId): void {
    this.durable.delete(groupId);
  }

  crash(): void {
    this.#generation++;
  }

  stats() {
    return { bytes: 0, segments: 1, syncs: this.appendCalls, appends: this.appendCalls };
  }

  async close(): Promise<void> {}

  #store({ groupId, hardState, entries, restartAt }: GroupAppend): void {
    let state = this.durable.get(groupId);
    if (state === undefined) {
      state = { hardState: { term: 0, vote: 0, commit: 0 }, start: { index: 0, term: 0 }, entries: [] };
      this.durable.set(groupId, state);
    }
    if (hardState !== undefined) state.hardState = hardState;
    if (restartAt !== undefined) {
      state.start = restartAt;
      state.entries = [];
    }
    const first = entries[0];
    if (first === undefined) return;
    const keep = first.index - state.start.index - 1;
    assert(keep >= 0 && keep <= state.entries.length, `group ${groupId}: entries at ${first.index} leave a gap`);
    state.entries = [...state.entries.slice(0, keep), ...entries];
  }
}
