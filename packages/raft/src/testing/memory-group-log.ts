import { outlineOf, takeBytes } from '../core/log.ts';
import type { Entry, HardState, LogPosition } from '../core/types.ts';
import type { EntryRange, GroupAppend, GroupId, GroupLog, RecoveredGroup } from '../multi/ports.ts';

const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };

interface MemoryGroup {
  hardState: HardState;
  start: LogPosition;
  entries: Entry[];
}

/**
 * A `GroupLog` without a disk, for tests and simulations that do not test recovery. Everything appended is "durable" at
 * once and is called back in a microtask, or by `schedule`.
 */
export class MemoryGroupLog implements GroupLog {
  readonly #groups = new Map<GroupId, MemoryGroup>();
  readonly #schedule: (fn: () => void) => void;
  #recovered: ReadonlyMap<GroupId, RecoveredGroup>;
  #appends = 0;
  #bytes = 0;
  #closed = false;
  /** The log has no queue. */
  readonly full = false;

  constructor(
    options: {
      readonly schedule?: (fn: () => void) => void;
      readonly recovered?: ReadonlyMap<GroupId, RecoveredGroup>;
    } = {},
  ) {
    this.#schedule = options.schedule ?? queueMicrotask;
    this.#recovered = options.recovered ?? new Map();
    for (const [groupId, { hardState, start, entries }] of this.#recovered) {
      this.#groups.set(groupId, { hardState, start, entries: entries.slice() });
    }
  }

  /** The log as the next process would find it. */
  reopen(): MemoryGroupLog {
    const recovered = new Map<GroupId, RecoveredGroup>();
    for (const [groupId, { hardState, start, entries }] of this.#groups) {
      recovered.set(groupId, { hardState, start, outline: outlineOf(start, entries), entries: entries.slice() });
    }
    return new MemoryGroupLog({ schedule: this.#schedule, recovered });
  }

  recovered(): ReadonlyMap<GroupId, RecoveredGroup> {
    return this.#recovered;
  }

  forgetRecovered(): void {
    this.#recovered = new Map();
  }

  append(batch: readonly GroupAppend[], done: () => void): void {
    if (this.#closed) return;
    this.#appends++;
    for (const append of batch) {
      this.#store(append);
      for (const { data } of append.entries) this.#bytes += data.length;
    }
    this.#schedule(done);
  }

  async read({ groupId, from, to, maxBytes }: EntryRange): Promise<readonly Entry[]> {
    const group = this.#groups.get(groupId);
    if (group === undefined || from <= group.start.index) return [];
    return takeBytes(group.entries.slice(from - group.start.index - 1, to - group.start.index), maxBytes);
  }

  compact(groupId: GroupId, position: LogPosition): void {
    const group = this.#groups.get(groupId);
    if (this.#closed || group === undefined || position.index <= group.start.index) return;
    group.entries = group.entries.slice(position.index - group.start.index);
    group.start = position;
  }

  removeGroup(groupId: GroupId): void {
    if (!this.#closed) this.#groups.delete(groupId);
  }

  stats(): { readonly bytes: number; readonly segments: number; readonly syncs: number; readonly appends: number } {
    return { bytes: this.#bytes, segments: 1, syncs: this.#appends, appends: this.#appends };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #store({ groupId, hardState, restartAt, entries }: GroupAppend): void {
    let group = this.#groups.get(groupId);
    if (group === undefined) {
      group = { hardState: NO_HARD_STATE, start: { index: 0, term: 0 }, entries: [] };
      this.#groups.set(groupId, group);
    }
    if (hardState !== undefined) group.hardState = hardState;
    if (restartAt !== undefined) {
      group.start = restartAt;
      group.entries = [];
    }
    const first = entries[0];
    if (first === undefined) return;
    const keep = first.index - group.start.index - 1;
    if (keep < 0) {
      group.entries = entries.slice(-keep);
      return;
    }
    if (keep > group.entries.length)
      throw new Error(`group ${groupId}: an append at index ${first.index} leaves a gap`);
    group.entries.length = keep;
    for (const entry of entries) group.entries.push(entry);
  }
}
