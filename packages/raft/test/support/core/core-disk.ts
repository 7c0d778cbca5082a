/** What a replica of the test cluster has on its disk. */
import { assert } from '@remora/base';
import { entryBytes } from '../../../src/core/log.ts';
import type {
  ConfState,
  Entry,
  EntryRead,
  HardState,
  LogPosition,
  Ready,
  SnapshotMeta,
} from '../../../src/core/types.ts';

export type Persist = NonNullable<Ready['persist']>;

export interface Disk {
  hardState: HardState;
  start: LogPosition;
  entries: Entry[];
  /** The state machine's last checkpoint. */
  checkpoint: SnapshotMeta;
}

export function emptyDisk(conf: ConfState): Disk {
  return diskFrom({ index: 0, term: 0 }, conf);
}

/** Of a group whose members begin behind the same position, in the same term. */
export function diskFrom(start: LogPosition, conf: ConfState): Disk {
  const hardState = { term: start.term, vote: 0, commit: start.index };
  return { hardState, start, entries: [], checkpoint: { ...start, conf } };
}

export function writeTo(disk: Disk, persist: Persist): void {
  if (persist.hardState !== undefined) disk.hardState = persist.hardState;
  if (persist.snapshot !== undefined) {
    disk.start = { index: persist.snapshot.index, term: persist.snapshot.term };
    disk.entries = [];
  }
  const first = persist.entries[0];
  if (first === undefined) return;
  const keep = first.index - disk.start.index - 1;
  assert(keep <= disk.entries.length, 'persisted entries leave no gap');
  if (keep >= 0) disk.entries = disk.entries.slice(0, keep).concat(persist.entries);
  else disk.entries = persist.entries.slice(-keep); // cut while the batch was under way
}

export function lastOf(disk: Disk): LogPosition {
  return disk.entries.at(-1) ?? disk.start;
}

export function termAt(disk: Disk, index: number): number | undefined {
  return index === disk.start.index ? disk.start.term : disk.entries[index - disk.start.index - 1]?.term;
}

/** What a log answers: contiguous from `read.from`, nothing when that is not there. */
export function readFrom(entries: readonly Entry[], { from, to, maxBytes }: EntryRead): readonly Entry[] {
  const found: Entry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (entry.index !== from + found.length || entry.index > to) continue;
    bytes += entryBytes(entry);
    if (bytes > maxBytes && found.length > 0) break;
    found.push(entry);
  }
  return found;
}

/** Drops entries up to `index`, if it is held. */
export function cutTo(disk: Disk, index: number): void {
  const term = termAt(disk, index);
  if (term === undefined) return;
  disk.entries = disk.entries.slice(index - disk.start.index);
  disk.start = { index, term };
}

/** A log that lacks what the state machine holds restarts there, before anything is appended (design §6). */
export function mend(disk: Disk): void {
  const { index, term } = disk.checkpoint;
  if (termAt(disk, index) === term) return;
  disk.start = { index, term };
  disk.entries = [];
}

/** Membership changes after `index`. */
export function changesAfter(disk: Disk, index: number): number {
  return disk.entries.filter((entry) => entry.type === 'conf' && entry.index > index).length;
}
