/**
 * Goes through the frames of a segment from a given one on, and reads in pieces what is not in the cache.
 *
 * C1. Only written and synced data is read: up to the segment's `position`. There every frame must be intact.
 */
import type { FrameCache, IndexedFrame } from './frame-cache.ts';
import { FRAME_HEADER_BYTES, frameBytes, LogDamagedError, readFrame } from './log-format.ts';
import type { Segment } from './segment-files.ts';

const NOTHING: Buffer = Buffer.alloc(0);

export class FrameCursor {
  readonly segment: Segment;
  readonly #cache: FrameCache;
  readonly #pieceBytes: number;
  /** The file from `#from` on. */
  #buffer = NOTHING;
  #from = 0;
  #at = 0;

  constructor(segment: Segment, { cache, pieceBytes }: { readonly cache: FrameCache; readonly pieceBytes: number }) {
    this.segment = segment;
    this.#cache = cache;
    this.#pieceBytes = pieceBytes;
  }

  /** Moves to the frame at `offset`; parts of it that were read already are not read again. */
  seek(offset: number): void {
    if (offset < this.#from || offset > this.#from + this.#buffer.length) this.#buffer = NOTHING;
    this.#at = offset;
  }

  /** The next frame; undefined at the end. */
  async next(): Promise<IndexedFrame | undefined> {
    const { segment } = this;
    const { generation } = segment;
    const offset = this.#at;
    if (offset >= segment.position) return undefined;
    const known = this.#cache.get(generation, offset);
    if (known !== undefined) {
      this.#at = known.end;
      return known;
    }
    await this.#load(FRAME_HEADER_BYTES);
    await this.#load(frameBytes(this.#buffer, offset - this.#from));
    const frame = readFrame(this.#buffer, offset - this.#from, generation);
    if (frame === undefined) {
      throw new LogDamagedError({ file: segment.path, offset }, 'a frame that was intact no longer is');
    }
    this.#at = this.#from + frame.end;
    return this.#cache.add({ generation, offset }, frame.payload, this.#at);
  }

  /** Ensures that the buffer has at least `bytes` from `#at` on, as far as the segment goes. */
  async #load(bytes: number): Promise<void> {
    const { file, position } = this.segment;
    const end = Math.min(this.#at + bytes, position);
    if (this.#buffer.length > 0 && end <= this.#from + this.#buffer.length) return;
    const length = Math.min(Math.max(bytes, this.#pieceBytes), position - this.#at);
    this.#buffer = await file.read(this.#at, length);
    this.#from = this.#at;
  }
}
