/**
 * Frames that were read lately, each with the places of its records. Groups that lag together have records in the same
 * frames, which are then read, checked and searched once for all of them.
 *
 * K1. Only frames with records of several groups are kept. They take at most `bytesMax`; the least recently used go
 *     first.
 * K2. A frame does not change, and a segment's generation is not reused: cached frames are never out of date.
 */
import type { GroupId } from '../ports.ts';
import { RecordReader } from './record-codec.ts';

/** A frame that is known to be intact. */
export interface IndexedFrame {
  readonly payload: Buffer;
  /** The offset of the next frame in the segment. */
  readonly end: number;
  /** For each group, the places of its records in the payload, in order. */
  readonly records: ReadonlyMap<GroupId, readonly number[]>;
}

/** The approximate memory of a frame beside its payload, and of each of its groups. */
const FRAME_OVERHEAD_BYTES = 512;
const GROUP_OVERHEAD_BYTES = 128;

export class FrameCache {
  readonly #bytesMax: number;
  /** The least recently used first. */
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

  /** Returns the frame with its records; keeps it if others may want it (K1). */
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

/** Copies the payload if it is a small part of a piece of the file, which it would keep in memory. */
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
