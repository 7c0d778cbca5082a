/**
 * The layout of frames in a stream of bytes: `head payload head payload …`. A head has 4 bytes, little-endian, with the
 * kind in its two lowest bits and the length of the payload above them.
 *
 * FP1. A payload shares memory with at most as many bytes as it has itself, so keeping it pins at most that much more.
 * FP2. The length that a head announces is checked before any byte of the payload is kept.
 * FP3. A partly received frame takes little more memory than its bytes, however small the pieces in which it arrives.
 */

const HEAD_BYTES = 4;
const KIND_BITS = 2;

/** The place of a kind in this list is its code in a head: append only, four at most. */
const KINDS = ['data', 'probe', 'answer', 'end'] as const;
export type FrameKind = (typeof KINDS)[number];

/** The peer sent something that is not a frame. The stream ends. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** FP3. This many pieces are joined: each piece costs some hundred bytes beside its own. */
const PIECES_MAX = 256;

/** Below this, one piece of memory for head and payload costs less than two writes. */
const COPY_BYTES_MAX = 16 * 1024;

/** Encodes a frame for sending, in one piece or two. */
export function frameBytes(kind: FrameKind, payload: Uint8Array): readonly Uint8Array[] {
  const whole = payload.length <= COPY_BYTES_MAX;
  const bytes = Buffer.allocUnsafe(whole ? HEAD_BYTES + payload.length : HEAD_BYTES);
  bytes.writeUInt32LE(payload.length * 2 ** KIND_BITS + KINDS.indexOf(kind), 0);
  if (!whole) return [bytes, payload];
  bytes.set(payload, HEAD_BYTES);
  return [bytes];
}

/** Cuts incoming bytes into frames. */
export class FrameParser {
  /** FP2. May be changed between frames. */
  payloadBytesMax: number;
  readonly #onFrame: (kind: FrameKind, payload: Buffer) => void;
  /** The beginning of a frame, in the pieces in which it arrived. */
  #pieces: Buffer[] = [];
  /** The number of pieces at the end that were not joined yet (FP3). */
  #crumbs = 0;
  #bytes = 0;
  #frames = 0;
  /** The number of bytes that the pieces must have before the next frame can be cut. */
  #wanted = HEAD_BYTES;

  constructor(payloadBytesMax: number, onFrame: (kind: FrameKind, payload: Buffer) => void) {
    this.payloadBytesMax = payloadBytesMax;
    this.#onFrame = onFrame;
  }

  /** The bytes of the unfinished frame. */
  get unfinishedBytes(): number {
    return this.#bytes;
  }

  /** The number of complete frames so far. */
  get frames(): number {
    return this.#frames;
  }

  /** Throws `FrameError` if a frame is larger than allowed. */
  push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#wanted) return this.#gather();
    this.#crumbs = 0;
    const bytes = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces, this.#bytes);
    const rest = bytes.subarray(this.#cut(bytes));
    this.#pieces = rest.length === 0 ? [] : [owned(rest, bytes)];
    this.#bytes = rest.length;
  }

  /** FP3. Each byte is copied once by this. */
  #gather(): void {
    if (++this.#crumbs < PIECES_MAX) return;
    this.#crumbs = 0;
    this.#pieces.push(Buffer.concat(this.#pieces.splice(-PIECES_MAX)));
  }

  /** Delivers all complete frames; returns where they end. */
  #cut(bytes: Buffer): number {
    let at = 0;
    for (;;) {
      this.#wanted = HEAD_BYTES;
      if (bytes.length - at < HEAD_BYTES) return at;
      const head = bytes.readUInt32LE(at);
      const length = head >>> KIND_BITS;
      if (length > this.payloadBytesMax) {
        throw new FrameError(`a frame of ${length} bytes exceeds the limit of ${this.payloadBytesMax} bytes`); // FP2
      }
      const from = at + HEAD_BYTES;
      this.#wanted = HEAD_BYTES + length;
      if (bytes.length - from < length) return at;
      at = from + length;
      this.#frames++;
      this.#onFrame(KINDS[head & (KINDS.length - 1)] ?? 'data', owned(bytes.subarray(from, at), bytes));
    }
  }
}

/** FP1. */
function owned(part: Buffer, whole: Buffer): Buffer {
  return 2 * part.length + HEAD_BYTES >= whole.length ? part : Buffer.from(part);
}
