/**
 * The windows that this side gives: RFC 9113 §5.2 and §6.9, and what incomplete messages may take.
 *
 * W1. What the connection has received is returned to its window whatever becomes of it, so a stream that is stalled,
 *     refused or reset never takes anything from the others.
 * W2. A stream's window is returned as its bytes arrive, as long as its user reads, so a message may be larger than a
 *     window.
 * W3. Above `unfinishedBytesPerConnectionMax`, of the streams that hold something, windows are returned to one only,
 *     until its message is whole; then to the next. So a connection makes progress with any number of large messages
 *     in bounded memory. A stream that holds nothing waits for none, and none waits for it: it may stay idle.
 * W4. Updates are batched: none is sent for less than half a stream's window, or a quarter of the connection's.
 */
import type { Http2Limits } from './limits.ts';
import type { Output } from './output.ts';
import { FLAG, FRAME, FRAME_HEAD_BYTES } from './protocol.ts';
import type { Stream } from './stream.ts';

/** What receiving needs of the connection. */
export interface ReceivingConnection {
  readonly limits: Http2Limits;
  readonly output: Output;
  addUnfinished(bytes: number): void;
}

const UPDATE_BYTES = 4;

export class Receiver {
  readonly #connection: ReceivingConnection;
  readonly #streamUpdateBytes: number;
  readonly #updateBytes: number;
  readonly #heldMax: number;
  /** What the client may still send on the connection. */
  #window: number;
  #uncreditedBytes = 0;
  #heldBytes = 0;
  #unreadBytes = 0;
  /** The stream that alone gets updates, and those that wait for it (W3). */
  #favoured: Stream | undefined;
  readonly #waiting = new Set<Stream>();

  constructor(connection: ReceivingConnection) {
    const { connectionWindowBytes, streamWindowBytes, unfinishedBytesPerConnectionMax } = connection.limits;
    this.#connection = connection;
    this.#window = connectionWindowBytes;
    this.#updateBytes = connectionWindowBytes >>> 2;
    this.#streamUpdateBytes = streamWindowBytes >>> 1;
    this.#heldMax = unfinishedBytesPerConnectionMax;
  }

  /** Bytes that streams keep because their methods read no further. */
  get unreadBytes(): number {
    return this.#unreadBytes;
  }

  /** Counts a DATA frame, padding included. Returns false if it is beyond the connection's window. */
  received(bytes: number): boolean {
    this.#window -= bytes;
    if (this.#window < 0) return false;
    this.#uncreditedBytes += bytes;
    if (this.#uncreditedBytes >= this.#updateBytes) {
      this.#update(0, this.#uncreditedBytes);
      this.#window += this.#uncreditedBytes;
      this.#uncreditedBytes = 0;
    }
    return true;
  }

  /** W2, W3, W4. */
  credit(stream: Stream): void {
    if (stream.uncreditedBytes < this.#streamUpdateBytes) return;
    if (stream.isPaused || stream.isRemoteClosed || stream.isOver) return;
    if (this.#heldBytes > this.#heldMax && stream.heldBytes > 0 && this.#favoured !== stream) {
      if (this.#favoured !== undefined) return void this.#waiting.add(stream);
      this.#favoured = stream;
    }
    this.#waiting.delete(stream);
    this.#update(stream.id, stream.uncreditedBytes);
    stream.receiveWindow += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
  }

  unreadHeld(bytes: number): void {
    this.#unreadBytes += bytes;
  }

  held(stream: Stream, bytes: number): void {
    this.#heldBytes += bytes;
    this.#connection.addUnfinished(bytes);
    if (bytes < 0 && this.#waiting.size > 0) this.#creditNext(stream);
  }

  messageDone(stream: Stream): void {
    if (this.#favoured === stream) {
      this.#favoured = undefined;
      this.#creditNext(stream);
    }
  }

  /** The stream has ended. */
  left(stream: Stream): void {
    this.#waiting.delete(stream);
    if (stream.heldBytes > 0) this.held(stream, -stream.heldBytes);
    this.#unreadBytes -= stream.unreadBytes;
    stream.heldBytes = 0;
    stream.unreadBytes = 0;
    this.messageDone(stream);
  }

  /** W3: to all who wait if there is room again, and otherwise to the first of them. */
  #creditNext(not: Stream): void {
    for (const stream of this.#waiting) {
      if (this.#heldBytes > this.#heldMax && this.#favoured !== undefined) return;
      if (stream !== not) this.credit(stream);
    }
  }

  #update(streamId: number, bytes: number): void {
    const { output } = this.#connection;
    output.reserve(FRAME_HEAD_BYTES + UPDATE_BYTES);
    output.head(UPDATE_BYTES, FRAME.windowUpdate, FLAG.none, streamId);
    output.uint32(bytes);
  }
}
