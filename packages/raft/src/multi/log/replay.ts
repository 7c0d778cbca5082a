/**
 * Rebuilds what each group had from its records, in the order of the log.
 *
 * R1. An append replaces everything from its first index on. After a group's first record that is still there, appends
 *     follow each other without a gap: segments go oldest first, so a later append never outlives an earlier one's.
 * R2. Moved entries fill in what went with their old segment. They replace nothing and say nothing about the group's
 *     end; a later append at or before their index voids them.
 * R3. Between the start and the last entry nothing may be missing: a start is durable before the segments go that it
 *     makes superfluous.
 */
import type { Entry, HardState, LogPosition } from '../../core/types.ts';
import type { GroupId, RecoveredGroup } from '../ports.ts';
import type { LogRecord } from './record-codec.ts';

const ORIGIN: LogPosition = { index: 0, term: 0 };
const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };

export class Replay {
  readonly #groups = new Map<GroupId, GroupReplay>();

  has(groupId: GroupId): boolean {
    return this.#groups.has(groupId);
  }

  /** Throws when the record cannot follow those before it. */
  apply(record: LogRecord): void {
    if (record.removed === true) {
      this.#groups.delete(record.groupId);
      return;
    }
    let group = this.#groups.get(record.groupId);
    if (group === undefined) {
      group = new GroupReplay();
      this.#groups.set(record.groupId, group);
    }
    group.apply(record);
  }

  /** Throws when a group lacks entries (R3). */
  result(): Map<GroupId, RecoveredGroup> {
    return new Map([...this.#groups].map(([groupId, group]) => [groupId, group.result(groupId)]));
  }
}

class GroupReplay {
  #hardState = NO_HARD_STATE;
  #start = ORIGIN;
  /** Contiguous. */
  #entries: Entry[] = [];
  readonly #moved = new Map<number, Entry>();

  apply(record: LogRecord): void {
    if (record.hardState !== undefined) this.#hardState = record.hardState;
    if (record.restartAt !== undefined) this.#restart(record.restartAt);
    if (record.compacted !== undefined) this.#compact(record.compacted);
    if (record.moved === true) {
      for (const entry of record.entries) this.#moved.set(entry.index, entry);
    } else {
      this.#append(record.entries);
    }
  }

  result(groupId: GroupId): RecoveredGroup {
    const newest = this.#entries.at(-1)?.index ?? 0;
    const last = Math.max(newest, ...this.#moved.keys());
    const base = this.#entries[0]?.index ?? 0;
    const entries: Entry[] = [];
    for (let index = this.#start.index + 1; index <= last; index++) {
      const entry = base > 0 && index >= base && index <= newest ? this.#entries[index - base] : this.#moved.get(index);
      if (entry === undefined) throw new Error(`group ${groupId} lacks the entry at index ${index}`);
      entries.push(entry);
    }
    return { hardState: this.#hardState, start: this.#start, entries };
  }

  #restart(position: LogPosition): void {
    this.#start = position;
    this.#entries = [];
    this.#moved.clear();
  }

  #compact(position: LogPosition): void {
    if (position.index < this.#start.index) return;
    this.#start = position;
    const base = this.#entries[0]?.index ?? 0;
    if (base <= position.index) this.#entries = this.#entries.slice(position.index + 1 - base);
    for (const index of this.#moved.keys()) {
      if (index <= position.index) this.#moved.delete(index);
    }
  }

  #append(entries: readonly Entry[]): void {
    const first = entries[0]?.index;
    if (first === undefined) return;
    const base = this.#entries[0]?.index ?? first;
    if (first > base + this.#entries.length) {
      throw new Error(`an append at index ${first} follows one that ended at ${base + this.#entries.length - 1}`);
    }
    if (first <= base) this.#entries = entries.slice();
    else {
      this.#entries.length = first - base;
      for (const entry of entries) this.#entries.push(entry);
    }
    for (const index of this.#moved.keys()) {
      if (index >= first) this.#moved.delete(index);
    }
  }
}
