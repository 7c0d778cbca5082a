/**
 * The chunks of a snapshot on their way out.
 *
 * W1. A chunk is kept from its sending until the receiver has stored it, so that a broken stream loses nothing; at most
 *     `size` chunks are kept at a time, whatever the size of the snapshot.
 * W2. Chunks are numbered from 0 in the order of the source; what is kept is one run of numbers.
 * W3. The memory of a chunk is used again once the receiver has stored it: by then a stream has carried it, and an
 *     older stream that had not was given up and carries nothing any more. New buffers for each chunk would make the
 *     process collect garbage several times a second, which all groups of the node would feel.
 */
import { assert } from '@remora/base';
import { CHUNK_HEAD_BYTES, writeChunkMessage } from './snapshot-messages.ts';
import { WireError } from './wire-bytes.ts';

/** Cuts chunks that are above the limit; smaller ones pass as they are, empty ones are left out. */
export async function* splitChunks(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += bytesMax) yield chunk.subarray(at, at + bytesMax);
  }
}

/** What was sent and is not stored yet, encoded as it was sent. */
export class ChunkWindow {
  readonly #size: number;
  #granted: number;
  /** Chunks stored at the receiver: the number of the first one kept (W2). */
  #stored = 0;
  readonly #kept: Buffer[] = [];
  /** What chunks were written into that are stored now (W3). */
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

  /** The receiver takes this many; the own limit stays (W1). */
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

  /** The first `count` chunks are stored. Returns whether that is news. */
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

  /** W3. A place that is too small goes, so that there are never more than `size`. */
  #room(bytes: number): Buffer {
    const free = this.#free.pop();
    const whole = free === undefined ? undefined : Buffer.from(free.buffer);
    return whole === undefined || whole.length < bytes ? Buffer.allocUnsafeSlow(bytes) : whole.subarray(0, bytes);
  }

  /** The messages from chunk `number` on, to be sent again. */
  from(number: number): readonly Buffer[] {
    if (number < this.#stored || number > this.taken) {
      throw new WireError(`chunk ${number} was requested, but only ${this.#stored} to ${this.taken} are available`);
    }
    return this.#kept.slice(number - this.#stored);
  }
}
