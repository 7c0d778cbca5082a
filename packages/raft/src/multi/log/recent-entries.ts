/**
 * The last entries of the groups after a start, as many as fit into memory: most of them are applied or sent next.
 *
 * N1. Frames and their records are read from the newest to the oldest: the first form found of each index is the valid
 *     one, and the entries kept of a group are contiguous up to its last entry.
 * N2. Entries from before a group's restart or removal are ignored.
 * N3. Memory: one segment at a time, and at most the limit, except for the record that reaches it. The search reads at
 *     most twice the limit, or one segment.
 */
import { ENTRY_MEMORY_BYTES } from '../../core/log.ts';
import type { Entry } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import { FRAME_HEADER_BYTES, frameBytes, framePayload, SEGMENT_HEADER_BYTES } from './log-format.ts';
import { RecordReader } from './record-codec.ts';
import type { ReplayedGroup } from './replay.ts';
import type { Segment } from './segment-files.ts';

const SCAN_FACTOR = 2;

interface Tail {
  readonly first: number;
  /** The lowest index taken so far; initially one past the last entry. */
  low: number;
  /** Newest first. */
  readonly pieces: (readonly Entry[])[];
}

/** `segments` are known to be intact, oldest first. */
export async function recentEntries(
  segments: readonly Segment[],
  groups: ReadonlyMap<GroupId, ReplayedGroup>,
  bytesMax: number,
): Promise<Map<GroupId, readonly Entry[]>> {
  const recent = new Recent(groups, bytesMax);
  let scanned = 0;
  for (const segment of segments.toReversed()) {
    if (recent.done || (scanned > 0 && scanned + segment.position > SCAN_FACTOR * bytesMax)) break;
    recent.takeSegment(await segment.file.read(0, segment.position));
    scanned += segment.position;
  }
  return recent.result();
}

class Recent {
  /** Groups that may have more entries. */
  readonly #open = new Map<GroupId, Tail>();
  readonly #tails = new Map<GroupId, Tail>();
  #left: number;

  constructor(groups: ReadonlyMap<GroupId, ReplayedGroup>, bytesMax: number) {
    this.#left = bytesMax;
    for (const [groupId, { start, outline }] of groups) {
      const tail = { first: start.index + 1, low: outline.lastIndex + 1, pieces: [] };
      if (tail.low === tail.first) continue;
      this.#open.set(groupId, tail);
      this.#tails.set(groupId, tail);
    }
  }

  get done(): boolean {
    return this.#left <= 0 || this.#open.size === 0;
  }

  takeSegment(bytes: Buffer): void {
    const frames: number[] = [];
    for (let at = SEGMENT_HEADER_BYTES; at + FRAME_HEADER_BYTES <= bytes.length; at += frameBytes(bytes, at))
      frames.push(at);
    for (const at of frames.toReversed()) {
      if (this.done) return;
      this.#takeFrame(framePayload(bytes, at));
    }
  }

  result(): Map<GroupId, readonly Entry[]> {
    return new Map([...this.#tails].map(([groupId, tail]) => [groupId, tail.pieces.toReversed().flat()]));
  }

  #takeFrame(payload: Buffer): void {
    const reader = new RecordReader(payload);
    const records: number[] = [];
    while (!reader.atEnd) {
      records.push(reader.position);
      reader.head();
      reader.skipEntries();
    }
    for (const position of records.toReversed()) {
      if (this.done) return;
      reader.seek(position);
      this.#takeRecord(reader);
    }
  }

  #takeRecord(reader: RecordReader): void {
    const { groupId, restartAt, removed } = reader.head();
    const tail = this.#open.get(groupId);
    if (tail === undefined) return;
    const entries = reader.entries(tail.first, tail.low - 1);
    if (entries.at(-1)?.index === tail.low - 1) {
      tail.pieces.push(entries);
      tail.low -= entries.length;
      for (const { data } of entries) this.#left -= data.length + ENTRY_MEMORY_BYTES;
    }
    if (tail.low === tail.first || restartAt !== undefined || removed === true) this.#open.delete(groupId); // N2
  }
}
