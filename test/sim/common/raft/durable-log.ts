/**
 * What a node's disk durably holds of its log. It reads the bytes that would survive a loss of power now, with the
 * product's codec but with its own replay, which keeps only positions. The checks use this class, not the code under
 * test, to learn what is durable.
 */
import type { SimDisk } from '@remora/base/testing';
import type { LogPosition } from '@remora/raft';
import {
  decodeSegmentHeader,
  readFrame,
  SEGMENT_HEADER_BYTES,
} from '../../../../packages/raft/src/multi/log/log-format.ts';
import { decodeRecords, type LogRecord } from '../../../../packages/raft/src/multi/log/record-codec.ts';

/** One group's log on the disk's medium. */
export class DurableGroup {
  term = 0;
  vote = 0;
  commit = 0;
  /** A term, or a vote in it, that a later record reverts. */
  takenBack: { readonly term: number; readonly vote: number } | undefined;
  start: LogPosition = { index: 0, term: 0 };
  /** The terms of the entries from `start.index + 1`. */
  terms: number[] = [];
  /** Copies of entries. Only a replay of the whole log may need them. */
  readonly moved = new Map<number, number>();

  get last(): number {
    return this.start.index + this.terms.length;
  }

  /** The term at `index`. Undefined if the medium does not hold it. */
  termAt(index: number): number | undefined {
    if (index === this.start.index) return this.start.term;
    return this.terms[index - this.start.index - 1];
  }
}

export class DurableLog {
  readonly groups = new Map<number, DurableGroup>();
  readonly #disk: SimDisk;
  readonly #dir: string;
  readonly #bytesOf: (path: string) => Buffer | undefined;
  /** How far each segment has been read. */
  readonly #read = new Map<string, number>();

  /** `bytesOf` selects which bytes of a file count. By default: those that its medium holds. */
  constructor(disk: SimDisk, dir: string, bytesOf = (path: string) => disk.durableContents(path)) {
    this.#disk = disk;
    this.#dir = dir;
    this.#bytesOf = bytesOf;
  }

  /** A file was synced: reads its new bytes. */
  synced(path: string): void {
    const generation = generationOf(path);
    const bytes = generation === undefined ? undefined : this.#bytesOf(path);
    if (generation === undefined || bytes === undefined) return;
    let at = this.#read.get(path) ?? 0;
    if (at === 0) {
      if (decodeSegmentHeader(path, bytes)?.generation !== generation) return;
      at = SEGMENT_HEADER_BYTES;
    }
    for (let frame = readFrame(bytes, at, generation); frame !== undefined; frame = readFrame(bytes, at, generation)) {
      for (const record of decodeRecords(frame.payload)) this.#follow(record);
      at = frame.end;
    }
    this.#read.set(path, at);
  }

  /** Reads everything again, after a crash or a recovery changed the files. */
  reread(): void {
    this.groups.clear();
    this.#read.clear();
    for (const name of this.#disk.durableNames()) if (name.startsWith(`${this.#dir}/`)) this.synced(name);
    for (const group of this.groups.values()) fillIn(group);
  }

  #follow(record: LogRecord): void {
    if (record.removed === true) {
      this.groups.delete(record.groupId);
      return;
    }
    let group = this.groups.get(record.groupId);
    if (group === undefined) {
      group = new DurableGroup();
      this.groups.set(record.groupId, group);
    }
    followRecord(group, record);
  }
}

function followRecord(group: DurableGroup, record: LogRecord): void {
  if (record.hardState !== undefined) {
    const { term, vote } = record.hardState;
    const kept = term > group.term || (term === group.term && (group.vote === 0 || vote === group.vote));
    if (!kept) group.takenBack ??= { term: group.term, vote: group.vote };
    group.term = term;
    group.vote = vote;
    group.commit = record.hardState.commit;
  }
  if (record.restartAt !== undefined) {
    group.start = record.restartAt;
    group.terms = [];
    group.moved.clear();
  }
  if (record.compacted !== undefined && record.compacted.index > group.start.index) {
    group.terms = group.terms.slice(record.compacted.index - group.start.index);
    group.start = record.compacted;
  }
  if (record.moved === true) {
    for (const { index, term } of record.entries) group.moved.set(index, term);
    return;
  }
  const first = record.entries[0];
  if (first === undefined) return;
  for (const index of group.moved.keys()) if (index >= first.index) group.moved.delete(index);
  fillIn(group);
  let at = first.index - group.start.index - 1;
  if (at > group.terms.length) {
    // Earlier entries were deleted with their segment. Copies later in the log fill the gap.
    for (let i = group.terms.length; i < at; i++) group.terms.push(0);
  }
  if (at < 0) return;
  group.terms.length = at;
  for (const { term } of record.entries) group.terms[at++] = term;
}

/** Inserts copies of entries whose originals were deleted with their segment. */
function fillIn(group: DurableGroup): void {
  for (const [index, term] of group.moved) {
    const at = index - group.start.index - 1;
    if (at < 0) {
      group.moved.delete(index);
      continue;
    }
    while (group.terms.length <= at) group.terms.push(0);
    if (group.terms[at] === 0) group.terms[at] = term;
  }
}

function generationOf(path: string): number | undefined {
  const match = /(\d{15})\.log$/.exec(path);
  return match === null ? undefined : Number(match[1]);
}
