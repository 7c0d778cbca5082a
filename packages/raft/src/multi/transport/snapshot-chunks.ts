/**
 * The chunks of an outgoing snapshot.
 *
 * W1. A chunk is kept from its sending until the receiver has stored it, so a broken stream loses nothing. At most
 *     `size` chunks are kept at a time, whatever the size of the snapshot.
 * W2. Chunks are numbered from 0 in the order of the source; the kept ones are consecutive.
 * W3. The memory of a chunk is reused once the receiver has stored it: by then a stream has carried it, and any older
 *     stream has ended and sends nothing any more. New buffers for each chunk would cause garbage collection several
 *     times a second, which would delay all groups of the node.
 */
import { assert } from '@remora/base';
import { CHUNK_HEAD_BYTES, writeChunkMessage } from './snapshot-messages.ts';
import { WireError } from './wire-bytes.ts';

/** Cuts chunks that are above the limit; smaller ones pass unchanged, empty ones are skipped. */
export async function* splitChunks(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += bytesMax) yield chunk.subarray(at, at + bytesMax);
  }
}

/** Chunks that were sent and are not stored yet, encoded as they were sent. */
export class ChunkWindow {
  readonly #size: number;
  #granted: number;
  /** The number of chunks stored at the receiver, which is the number of the first one kept (W2). */
  #stored = 0;
  readonly #kept: Buffer[] = [];
  /** Buffers of chunks that are stored now (W3). */
  readonly #free: Buffer[] = [];
  #bytes = 0;

  constructor(size: number) {
    this.#size = size;
    this.#granted = size;
  }

  /** Chunks taken from the source so far. */
  get taken(): number {
    return this.#stored + this.#kept.length;
  }

  get stored(): number {
    return this.#stored;
  }

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get hasRoom(): boolean {
    return this.#kept.length < this.#granted;
  }

  /** The receiver accepts this many; the local limit still applies (W1). */
  grant(chunks: number): void {
    this.#granted = Math.min(this.#size, chunks);
  }

  /** Takes the next chunk and returns the message that carries it. */
  push(bytes: Uint8Array): Buffer {
    assert(this.hasRoom, 'W1: a chunk is taken when there is room for it');
    const message = this.#room(CHUNK_HEAD_BYTES + bytes.length);
    writeChunkMessage(message, this.taken, bytes);
    this.#kept.push(message);
    this.#bytes += message.length;
    return message;
  }

  /** The first `count` chunks are stored. Returns whether any of them is newly so. */
  release(count: number): boolean {
    if (count > this.taken) throw new WireError(`${count} chunks of a snapshot are stored, ${this.taken} were sent`);
    if (count <= this.#stored) return false;
    for (const message of this.#kept.splice(0, count - this.#stored)) {
      this.#bytes -= message.length;
      this.#free.push(message);
    }
    this.#stored = count;
    return true;
  }

  /** W3. A buffer that is too small is dropped, so that there are never more than `size`. */
  #room(bytes: number): Buffer {
    const free = this.#free.pop();
    const whole = free === undefined ? undefined : Buffer.from(free.buffer);
    return whole === undefined || whole.length < bytes ? Buffer.allocUnsafeSlow(bytes) : whole.subarray(0, bytes);
  }

  /** The messages from chunk `number` on, for sending them again. */
  from(number: number): readonly Buffer[] {
    if (number < this.#stored || number > this.taken) {
      throw new WireError(`chunk ${number} was requested, but only ${this.#stored} to ${this.taken} are available`);
    }
    return this.#kept.slice(number - this.#stored);
  }
}
