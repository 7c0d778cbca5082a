/**
 * Works out what each group has from the outlines of its records, in the order of the log.
 *
 * R1. An append replaces everything from its first index on. After a group's first record that is still there, appends
 *     follow each other without a gap: segments go oldest first, so a later append never outlives an earlier one's.
 * R2. Moved entries fill in what went with their old segment. They replace nothing and say nothing about the group's
 *     end; a later append at or before their index voids them.
 * R3. Between the start and the last entry nothing may be missing: a start is durable before the segments go that it
 *     makes superfluous.
 */
import type { HardState, LogOutline, LogPosition } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import { IndexRuns } from './index-runs.ts';
import type { EntriesOutline, RecordHead } from './record-codec.ts';

const ORIGIN: LogPosition = { index: 0, term: 0 };
const NO_HARD_STATE: HardState = { term: 0, vote: 0, commit: 0 };

export interface ReplayedGroup {
  readonly hardState: HardState;
  readonly start: LogPosition;
  readonly outline: Omit<LogOutline, 'bytes'>;
}

export class Replay {
  readonly #groups = new Map<GroupId, GroupReplay>();

  /** Throws when the record cannot follow those before it. */
  apply(record: RecordHead, entries: EntriesOutline): void {
    if (record.removed === true) {
      this.#groups.delete(record.groupId);
      return;
    }
    let group = this.#groups.get(record.groupId);
    if (group === undefined) {
      group = new GroupReplay();
      this.#groups.set(record.groupId, group);
    }
    group.apply(record, entries);
  }

  /** Throws when a group lacks entries (R3). */
  result(): Map<GroupId, ReplayedGroup> {
    return new Map([...this.#groups].map(([groupId, group]) => [groupId, group.result(groupId)]));
  }
}

class GroupReplay {
  #hardState = NO_HARD_STATE;
  #start = ORIGIN;
  /** By index: twice the term, plus one for `conf`. */
  readonly #entries = new IndexRuns();
  /** The last index that was appended and not compacted since; 0 if there is none. */
  #newest = 0;

  apply(record: RecordHead, entries: EntriesOutline): void {
    if (record.hardState !== undefined) this.#hardState = record.hardState;
    if (record.restartAt !== undefined) this.#restart(record.restartAt);
    if (record.compacted !== undefined) this.#compact(record.compacted);
    if (entries.first === 0) return;
    if (record.moved !== true) this.#append(entries);
    forEachRun(entries, (first, last, value) => {
      if (first > this.#start.index) this.#entries.set(first, last, value);
      else if (last > this.#start.index) this.#entries.set(this.#start.index + 1, last, value);
    });
  }

  result(groupId: GroupId): ReplayedGroup {
    const terms: LogPosition[] = [];
    const confs: number[] = [];
    let lastIndex = this.#start.index;
    this.#entries.forEach((first, last, value) => {
      if (first !== lastIndex + 1) throw new Error(`group ${groupId} lacks the entry at index ${lastIndex + 1}`);
      lastIndex = last;
      const term = Math.floor(value / 2);
      if (terms.at(-1)?.term !== term) terms.push({ index: first, term });
      if (value % 2 === 1) for (let index = first; index <= last; index++) confs.push(index);
    });
    return { hardState: this.#hardState, start: this.#start, outline: { terms, confs, lastIndex } };
  }

  #restart(position: LogPosition): void {
    this.#start = position;
    this.#entries.cutFrom(0);
    this.#newest = 0;
  }

  #compact(position: LogPosition): void {
    if (position.index < this.#start.index) return;
    this.#start = position;
    this.#entries.cutTo(position.index);
    if (this.#newest <= position.index) this.#newest = 0;
  }

  #append({ first, last }: EntriesOutline): void {
    if (this.#newest > 0 && first > this.#newest + 1) {
      throw new Error(`an append at index ${first} follows one that ended at ${this.#newest}`);
    }
    this.#entries.cutFrom(first);
    this.#newest = last;
  }
}

function forEachRun({ runs, last }: EntriesOutline, visit: (first: number, last: number, value: number) => void): void {
  for (let i = 0; i < runs.length; i += 3) {
    const [first = 0, term = 0, conf = 0] = [runs[i], runs[i + 1], runs[i + 2]];
    visit(first, (runs[i + 3] ?? last + 1) - 1, term * 2 + conf);
  }
}
