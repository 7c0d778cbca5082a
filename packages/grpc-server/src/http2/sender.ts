/**
 * Sends what waits for windows: RFC 9113 §5.2 and §6.9.
 *
 * S1. No DATA is sent beyond the window of its stream or of the connection.
 * S2. Streams whose window is open take turns, one frame each. A stream whose window is closed is in no queue, so it
 *     holds up nobody.
 * S3. While the socket does not take what it was given, nothing more is framed, and nothing is read: the input cannot
 *     cause output without end.
 */
import type { Http2Limits } from './limits.ts';
import type { Output } from './output.ts';
import {
  FLAG,
  FRAME,
  FRAME_BYTES_MAX_INITIAL,
  FRAME_HEAD_BYTES,
  WINDOW_BYTES_INITIAL,
  WINDOW_BYTES_MAX,
} from './protocol.ts';
import type { Rate } from './rate.ts';
import type { Stream } from './stream.ts';

/** What sending needs of the connection. */
export interface SendingConnection {
  readonly output: Output;
  readonly keeper: { readonly ticks: number; hasAnswered: boolean };
  readonly isOver: boolean;
  /** Counts bytes that wait. */
  addOutput(bytes: number): void;
  floods(limit: keyof Http2Limits): void;
}

/** Larger frames would let a stream hold up the others for longer. */
const FRAME_BYTES_USED = FRAME_BYTES_MAX_INITIAL;
const TINY_BYTES = 1_024;

export class Sender {
  readonly #connection: SendingConnection;
  /** Streams with an open window for which something waits, the next one first (S2). */
  readonly #ready = new Set<Stream>();
  readonly #tiny: Rate;
  /** The connection's window; the peer's. */
  window = WINDOW_BYTES_INITIAL;
  /** The window of a new stream; the peer's setting. */
  streamWindow = WINDOW_BYTES_INITIAL;
  readonly frameBytesMax = FRAME_BYTES_USED;
  /** The socket has more than it takes (S3). */
  isBehind = false;

  constructor(connection: SendingConnection, tiny: Rate) {
    this.#connection = connection;
    this.#tiny = tiny;
  }

  /** Something was added to the stream's queue. */
  queued(stream: Stream, bytes: number): void {
    const { queue } = stream;
    if (queue === undefined) return;
    if (queue.bytes === bytes) queue.movedAtTick = this.#connection.keeper.ticks;
    this.#connection.addOutput(bytes);
    if (stream.sendWindow <= 0) return;
    this.#ready.add(stream);
    this.pump();
  }

  /** Sends what may be sent now. */
  pump(): void {
    for (const stream of this.#ready) {
      if (this.window <= 0 || this.isBehind || this.#connection.isOver) return;
      this.#ready.delete(stream);
      this.#sendFrame(stream);
    }
  }

  /** S1 */
  #sendFrame(stream: Stream): void {
    const { queue } = stream;
    const { output } = this.#connection;
    if (queue === undefined || queue.bytes === 0) return;
    const bytes = Math.min(queue.bytes, stream.sendWindow, this.window, FRAME_BYTES_USED);
    if (bytes <= 0) return;
    if (bytes < TINY_BYTES && bytes < queue.bytes && this.#tiny.isExceeded()) {
      return this.#connection.floods('tinyFramesPerSecondMax');
    }
    output.reserve(FRAME_HEAD_BYTES);
    output.head(bytes, FRAME.data, FLAG.none, stream.id);
    stream.takeWindow(bytes);
    queue.take(bytes, (piece) => output.piece(piece));
    queue.movedAtTick = this.#connection.keeper.ticks;
    this.#connection.keeper.hasAnswered = true;
    this.#connection.addOutput(-bytes);
    if (queue.bytes > 0) {
      if (stream.sendWindow > 0) this.#ready.add(stream);
    } else if (queue.trailers !== undefined) stream.finishNow(queue.trailers);
    else if (queue.isAwaited) {
      queue.isAwaited = false;
      stream.onSent();
    }
  }

  /** The peer's WINDOW_UPDATE for the connection. Returns false if the window becomes too large. */
  grow(bytes: number): boolean {
    this.window += bytes;
    if (this.window > WINDOW_BYTES_MAX) return false;
    this.pump();
    return true;
  }

  /** The peer's WINDOW_UPDATE for a stream, or a change of its setting. Returns false if it becomes too large. */
  growStream(stream: Stream, bytes: number): boolean {
    stream.sendWindow += bytes;
    if (stream.sendWindow > WINDOW_BYTES_MAX) return false;
    if (stream.queue !== undefined && stream.queue.bytes > 0) {
      if (stream.sendWindow > 0) this.#ready.add(stream);
      else this.#ready.delete(stream);
    }
    return true;
  }

  /**
   * The peer's SETTINGS_INITIAL_WINDOW_SIZE (§6.9.2). Returns false if a window becomes too large. Nothing is sent
   * before the caller has acknowledged the setting and calls `pump`: the peer counts on it from then on (§6.5.3).
   */
  setStreamWindow(bytes: number, streams: Iterable<Stream>): boolean {
    const change = bytes - this.streamWindow;
    this.streamWindow = bytes;
    for (const stream of streams) if (!this.growStream(stream, change)) return false;
    return true;
  }

  /** The socket takes more again: notifies the user of a stream that waits, if nothing is queued for it. */
  wake(stream: Stream): void {
    const { queue } = stream;
    if (queue?.isAwaited !== true || queue.bytes > 0 || this.isBehind) return;
    queue.isAwaited = false;
    stream.onSent();
  }

  /** Drops what waits for a stream that is reset. */
  drop(stream: Stream): void {
    this.#ready.delete(stream);
    const { queue } = stream;
    if (queue === undefined) return;
    this.#connection.addOutput(-queue.bytes);
    stream.queue = undefined;
  }

  /** Whether the rest of an answer has waited for the client's window since before `tick`. */
  isStalled({ queue }: Stream, tick: number): boolean {
    return queue !== undefined && queue.bytes > 0 && queue.trailers !== undefined && queue.movedAtTick < tick;
  }
}
