/**
 * Cuts the chunks that a socket reads into frames: RFC 9113 §4.1.
 *
 * R1. A frame that lies whole in a chunk is passed on in place. Only a frame that is cut by the end of a chunk is
 *     copied, once, into memory of its own; nothing else of a chunk is kept.
 * R2. At most one frame is kept, and it has at most `FRAME_HEAD_BYTES + FRAME_BYTES_MAX` bytes.
 */
import { FRAME_BYTES_MAX } from './limits.ts';
import { ERROR, FRAME_HEAD_BYTES, PREFACE } from './protocol.ts';

export interface FrameSink {
  /** Takes one frame with the payload `bytes[start, end)`. Returns false if no further one is wanted. */
  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /** The input cannot be read further. */
  onBroken(error: number, what: string): void;
}

const NOTHING = Buffer.alloc(0);

export class FrameReader {
  readonly #sink: FrameSink;
  /** How much of the preface has arrived. */
  #prefaceBytes = 0;
  /** The beginning of a frame that is not whole; its first `#kept` bytes are filled. */
  #partial: Buffer = NOTHING;
  #kept = 0;
  #isOver = false;
  /** Frames passed on so far. */
  frames = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Bytes of the frame that is not whole yet. */
  get unfinishedBytes(): number {
    return this.#kept;
  }

  /** Drops all input from now on. */
  end(): void {
    this.#isOver = true;
    this.#partial = NOTHING;
    this.#kept = 0;
  }

  read(chunk: Buffer): void {
    let at = this.#prefaceBytes < PREFACE.length ? this.#preface(chunk) : 0;
    if (this.#kept > 0) at = this.#complete(chunk, at);
    const last = chunk.length - FRAME_HEAD_BYTES;
    while (at <= last && !this.#isOver) {
      const length = payloadBytes(chunk, at);
      if (length > FRAME_BYTES_MAX) return this.#tooLarge(length);
      const start = at + FRAME_HEAD_BYTES;
      if (start + length > chunk.length) break;
      at = start + length;
      if (!this.#frame(chunk, start, length)) return this.end();
    }
    if (at < chunk.length && !this.#isOver) this.#keep(chunk, at);
  }

  /** Returns where the frames of the chunk begin. */
  #preface(chunk: Buffer): number {
    const count = Math.min(PREFACE.length - this.#prefaceBytes, chunk.length);
    for (let at = 0; at < count; at++) {
      if (chunk[at] !== PREFACE[this.#prefaceBytes + at]) {
        this.end();
        this.#sink.onBroken(ERROR.protocolError, 'the connection does not begin with the preface of HTTP/2');
        return chunk.length;
      }
    }
    this.#prefaceBytes += count;
    return count;
  }

  /** Adds to the frame that is not whole (R1). Returns where the next one begins. */
  #complete(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#kept < FRAME_HEAD_BYTES) {
      at = this.#fill(chunk, at, FRAME_HEAD_BYTES);
      if (this.#kept < FRAME_HEAD_BYTES) return at;
      const length = payloadBytes(this.#partial, 0);
      if (length > FRAME_BYTES_MAX) {
        this.#tooLarge(length);
        return chunk.length;
      }
      const whole = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
      this.#partial.copy(whole, 0, 0, FRAME_HEAD_BYTES);
      this.#partial = whole;
    }
    const bytes = this.#partial;
    at = this.#fill(chunk, at, bytes.length);
    if (this.#kept < bytes.length) return at;
    this.#kept = 0;
    this.#partial = NOTHING;
    if (!this.#frame(bytes, FRAME_HEAD_BYTES, bytes.length - FRAME_HEAD_BYTES)) this.end();
    return at;
  }

  #fill(chunk: Buffer, from: number, until: number): number {
    const count = Math.min(until - this.#kept, chunk.length - from);
    chunk.copy(this.#partial, this.#kept, from, from + count);
    this.#kept += count;
    return from + count;
  }

  /** Keeps the rest of a chunk, which is less than a frame (R2). */
  #keep(chunk: Buffer, at: number): void {
    const rest = chunk.length - at;
    const bytes = rest < FRAME_HEAD_BYTES ? FRAME_HEAD_BYTES : FRAME_HEAD_BYTES + payloadBytes(chunk, at);
    this.#partial = Buffer.allocUnsafe(bytes);
    this.#kept = chunk.copy(this.#partial, 0, at);
  }

  /** The head stands before `start`. */
  #frame(bytes: Buffer, start: number, length: number): boolean {
    this.frames++;
    const type = bytes[start - 6] ?? 0;
    const flags = bytes[start - 5] ?? 0;
    return this.#sink.onFrame(type, flags, uint31(bytes, start - 4), bytes, start, start + length);
  }

  #tooLarge(length: number): void {
    this.end();
    this.#sink.onBroken(ERROR.frameSizeError, `a frame of ${length} bytes; the limit is ${FRAME_BYTES_MAX}`);
  }
}

function payloadBytes(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}

/** 31 bits; the first bit is reserved and ignored. */
export function uint31(bytes: Buffer, at: number): number {
  return (
    (((bytes[at] ?? 0) & 0x7f) << 24) |
    ((bytes[at + 1] ?? 0) << 16) |
    ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)
  );
}
