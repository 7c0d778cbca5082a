/**
 * Frames that reads went over lately, each with the places of its records: groups that lag together lie in the same
 * frames, which are then read from the file, checked and gone through once for all of them.
 *
 * K1. Only frames with records of several groups are kept. They take at most `bytesMax`; the longest unused go first.
 * K2. A frame does not change, and a segment's generation is not used again: what is kept is never out of date.
 */
import type { GroupId } from '../ports.ts';
import { RecordReader } from './record-codec.ts';

/** A frame that is known to be intact. */
export interface IndexedFrame {
  readonly payload: Buffer;
  /** Where in the segment the next frame begins. */
  readonly end: number;
  /** Where in the payload each group's records begin, in order. */
  readonly records: ReadonlyMap<GroupId, readonly number[]>;
}

/** About what a frame takes beside its payload, and for each of its groups. */
const FRAME_OVERHEAD_BYTES = 512;
const GROUP_OVERHEAD_BYTES = 128;

export class FrameCache {
  readonly #bytesMax: number;
  /** The longest unused first. */
  readonly #frames = new Map<string, IndexedFrame>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(generation: number, offset: number): IndexedFrame | undefined {
    const key = keyOf(generation, offset);
    const frame = this.#frames.get(key);
    if (frame === undefined) return undefined;
    this.#frames.delete(key);
    this.#frames.set(key, frame);
    return frame;
  }

  /** The frame with its records; it is kept if others may want it (K1). */
  add(place: { readonly generation: number; readonly offset: number }, payload: Buffer, end: number): IndexedFrame {
    const records = recordsOf(payload);
    if (records.size < 2) return { payload, end, records };
    const frame = { payload: alone(payload), end, records };
    this.#frames.set(keyOf(place.generation, place.offset), frame);
    this.#bytes += sizeOf(frame);
    for (const [key, oldest] of this.#frames) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#frames.delete(key);
      this.#bytes -= sizeOf(oldest);
    }
    return frame;
  }
}

/** A copy if the payload is a small part of a piece of the file, which it would keep in memory. */
function alone(payload: Buffer): Buffer {
  return 2 * payload.length >= payload.buffer.byteLength ? payload : Buffer.from(payload);
}

function keyOf(generation: number, offset: number): string {
  return `${generation}/${offset}`;
}

function sizeOf({ payload, records }: IndexedFrame): number {
  return payload.length + FRAME_OVERHEAD_BYTES + records.size * GROUP_OVERHEAD_BYTES;
}

function recordsOf(payload: Buffer): ReadonlyMap<GroupId, readonly number[]> {
  const records = new Map<GroupId, number[]>();
  const reader = new RecordReader(payload);
  while (!reader.atEnd) {
    const { position } = reader;
    const { groupId } = reader.head();
    reader.skipEntries();
    const places = records.get(groupId);
    if (places === undefined) records.set(groupId, [position]);
    else places.push(position);
  }
  return records;
}
