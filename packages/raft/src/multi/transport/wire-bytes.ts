/**
 * The primitives of frames: the version, and varints of safe integers.
 *
 * B1. A varint is little-endian base 128, with at most 8 bytes. Beyond 32 bits it avoids bit operations, which would
 *     truncate.
 * B2. Reading never passes the end and never allocates more than the size of the input: it throws `WireError`.
 */
import { assert } from '@remora/base';

/**
 * The version of frames, heartbeats and snapshot streams. 2: merged heartbeats. 3: messages in bytes instead of
 * msgpack.
 */
export const WIRE_VERSION = 3;

/** Bytes from a peer that are not a valid frame. The stream they came on is closed. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

export const VARINT_BYTES_MAX = 8;

/** Writes into one buffer of sufficient size. */
export class WireWriter {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytesMax: number) {
    this.#buffer = Buffer.allocUnsafe(bytesMax);
  }

  byte(value: number): void {
    this.#buffer[this.#at++] = value;
  }

  varint(value: number): void {
    if ((value & 0x7f) === value) {
      this.#buffer[this.#at++] = value;
      return;
    }
    assert(Number.isSafeInteger(value) && value >= 0, 'numbers on the wire are safe integers');
    let left = value;
    for (; left > 0x7fff_ffff; left = Math.floor(left / 0x80)) this.#buffer[this.#at++] = (left % 0x80) | 0x80; // B1
    for (; left >= 0x80; left >>>= 7) this.#buffer[this.#at++] = (left & 0x7f) | 0x80;
    this.#buffer[this.#at++] = left;
  }

  varints(values: readonly number[]): void {
    this.varint(values.length);
    for (const value of values) this.varint(value);
  }

  bytes(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  finish(): Buffer {
    assert(this.#at <= this.#buffer.length, 'the writer was made large enough');
    return this.#buffer.subarray(0, this.#at);
  }
}

/** Reads from a position on (B2). */
export class WireReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get at(): number {
    return this.#at;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new WireError('truncated message');
    return byte;
  }

  varint(): number {
    const first = this.byte();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    let scale = 0x80;
    for (let i = 1; i < VARINT_BYTES_MAX; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 0x80;
    }
    throw new WireError('number too large');
  }

  varints(): number[] {
    const count = this.count(1);
    const values: number[] = [];
    for (let i = 0; i < count; i++) values.push(this.varint());
    return values;
  }

  /**
   * Reads the number of items that follow, each of at least `bytesEach`: never more than the remaining bytes allow
   * (B2).
   */
  count(bytesEach: number): number {
    const count = this.varint();
    if (count * bytesEach > this.#bytes.length - this.#at) throw new WireError('truncated list');
    return count;
  }

  /** Skips `length` bytes and returns where they begin. */
  skip(length: number): number {
    const from = this.#at;
    if (length > this.#bytes.length - from) throw new WireError('truncated bytes');
    this.#at += length;
    return from;
  }

  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  end(): void {
    if (!this.atEnd) throw new WireError('trailing bytes');
  }
}
