/**
 * A flipped bit on a disk, in the durable contents of a node's log.
 *
 * Only bits are flipped whose damage can be distinguished from a write that a crash tore: those of frames before
 * another durable one, or of the header of a segment with two frames. In the last frame the damage would look like a
 * torn tail (log-recovery.ts V1); beyond it, in padding and in dead frames, it would have no effect.
 */
import type { SimDisk } from '@remora/base/testing';
import {
  decodeSegmentHeader,
  FRAME_HEADER_BYTES,
  readFrame,
  SEGMENT_HEADER_BYTES,
} from '../../../../packages/raft/src/multi/log/log-format.ts';

const SEGMENT = /^log\/(\d{15})\.log$/;

interface Place {
  readonly path: string;
  readonly position: number;
  readonly bytes: number;
}

export class LogDamage {
  readonly path: string;
  readonly #disk: SimDisk;
  readonly #position: number;
  readonly #mask: number;

  /** Flips one bit, as drawn; returns undefined if the log is too short. */
  static inflict(disk: SimDisk, drawn: { readonly place: number; readonly bit: number }): LogDamage | undefined {
    const places = vulnerable(disk);
    const place = places[drawn.place % Math.max(1, places.length)];
    return place === undefined ? undefined : new LogDamage(disk, place, drawn.bit);
  }

  private constructor(disk: SimDisk, { path, position, bytes }: Place, bit: number) {
    this.path = path;
    this.#disk = disk;
    this.#position = position + ((bit >> 3) % bytes);
    this.#mask = 1 << (bit & 7);
    this.#flip();
  }

  /** Whether the log still has that segment. Its name contains its generation, which no other segment ever gets. */
  get stands(): boolean {
    return this.#disk.has(this.path);
  }

  /** The bit flips back. */
  undo(): void {
    if (this.stands) this.#flip();
  }

  redo(): void {
    if (this.stands) this.#flip();
  }

  #flip(): void {
    this.#disk.corrupt(this.path, this.#position, this.#mask);
  }
}

/** Places where damage must be noticed. */
function vulnerable(disk: SimDisk): readonly Place[] {
  const found: Place[] = [];
  let last: Place | undefined;
  for (const path of disk.durableNames()) {
    const generation = Number(SEGMENT.exec(path)?.[1] ?? 0);
    const bytes = generation === 0 ? undefined : disk.durableContents(path);
    if (bytes === undefined || decodeSegmentHeader(path, bytes)?.generation !== generation) continue;
    const frames = framesOf(path, bytes, generation);
    if (frames.length > 1) found.push({ path, position: 0, bytes: SEGMENT_HEADER_BYTES });
    found.push(...frames);
    last = frames.at(-1) ?? last;
  }
  return found.filter((place) => place !== last);
}

function framesOf(path: string, bytes: Buffer, generation: number): readonly Place[] {
  const frames: Place[] = [];
  for (let position = SEGMENT_HEADER_BYTES; ; ) {
    const frame = readFrame(bytes, position, generation);
    if (frame === undefined) return frames;
    frames.push({ path, position, bytes: FRAME_HEADER_BYTES + frame.payload.length });
    position = frame.end;
  }
}
