/**
 * A call with a stream of requests, of responses, or of both.
 *
 * SR1. Requests are passed on in order, and none while the method has paused the call: what arrives then is kept, at
 *      most a window, and the client gets no window updates.
 * SR2. A method with one request gets it when the client has ended its side.
 * SR3. `write` returns false when the client is behind; `onDrain` follows when it has caught up.
 */
import { HEAD_BLOCK, OK_BLOCK, statusBlock } from './header-blocks.ts';
import { KeptBytes } from './kept-bytes.ts';
import { MessageReader, type MessageSink } from './message-reader.ts';
import type { MetadataFields } from './metadata.ts';
import { ServerCall } from './server-call.ts';
import { STATUS } from './status.ts';

/**
 * A client is behind when this much waits for its window. A client that is merely busy for a moment is not: a stream of
 * a thousand watches has to start all of them again after it was behind.
 */
const UNREAD_MESSAGES_MAX = 4_096;
const UNREAD_BYTES_MAX = 512 << 10;

export class StreamCall<Request, Response> extends ServerCall implements MessageSink {
  readonly #reader = new MessageReader(this);
  /** What has arrived while the call is paused (SR1). */
  readonly #kept = new KeptBytes((bytes) => this.holdUnread(bytes));
  #isReading = false;
  /** The client has ended its side, and the method was not told yet. */
  #isEndDue = false;
  /** SR2. */
  #single: { readonly request: unknown } | undefined;

  onRequest: ((request: Request) => void) | undefined;
  /** The client sends no more requests. */
  onHalfClose: (() => void) | undefined;
  /** The client has caught up after `write` has returned false. */
  onDrain: (() => void) | undefined;

  override onOpen(): void {
    if (this.method.isRequestStream) this.owedSinceTick = -1;
    this.guarded(() => this.method.run(this));
  }

  override onData(bytes: Buffer, start: number, end: number): void {
    const at = this.isPaused || this.#isReading ? start : this.#read(bytes, start, end);
    if (at < end && !this.isOver) this.#kept.add(bytes, at, end); // SR1
  }

  /** Returns how far it came: before the end only if the call is paused or over. */
  #read(bytes: Buffer, start: number, end: number): number {
    this.#isReading = true;
    const at = this.#reader.read(bytes, start, end);
    this.#isReading = false;
    return at;
  }

  onMessage(isCompressed: boolean, message: Buffer): boolean {
    const decoded = this.decode(isCompressed, message);
    if (decoded === undefined) return false;
    if (!this.method.isRequestStream) {
      if (this.#single !== undefined) this.giveUp(STATUS.unimplemented, 'the call has more than one request');
      this.#single = decoded;
      this.hasMessage = true;
      this.host.receiver.messageDone(this);
    } else {
      this.messageDone();
      this.#deliver(decoded.request);
    }
    return !this.isPaused && !this.isOver;
  }

  #deliver(request: unknown): void {
    try {
      this.onRequest?.(request as Request);
    } catch (error) {
      this.threw(error);
    }
  }

  override onEnd(): void {
    this.#isEndDue = true;
    if (!this.isPaused && !this.#isReading) this.#halfClose();
  }

  #halfClose(): void {
    this.#isEndDue = false;
    if (this.#reader.isInside || (!this.method.isRequestStream && this.#single === undefined)) {
      return this.giveUp(STATUS.internal, 'the call ended before its request was whole');
    }
    this.owedSinceTick = -1;
    if (this.#single !== undefined) this.#deliver(this.#single.request);
    this.guarded(() => {
      if (!this.isOver) this.onHalfClose?.();
    });
  }

  /** Reads on after `pause`. It may be called by `onRequest`. */
  override resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    if (this.#isReading || this.isOver) return;
    const kept = this.#kept;
    if (!kept.isEmpty) kept.readTo(this.#read(kept.bytes, kept.start, kept.end));
    if (this.isPaused || this.isOver) return;
    if (this.#isEndDue) this.#halfClose();
    else super.resume();
  }

  override onSent(): void {
    this.guarded(() => {
      if (!this.isOver) this.onDrain?.();
    });
  }

  /** Sends a response. Returns false if the client is behind (SR3). */
  write(response: Response): boolean {
    if (this.isOver) return true;
    const message = this.encode(response);
    if (message === undefined) return true;
    this.sendMessage(message);
    const { queue } = this;
    if (queue === undefined || this.isOver) return true;
    const isBehind = queue.messages >= UNREAD_MESSAGES_MAX || queue.bytes > UNREAD_BYTES_MAX;
    if (isBehind) queue.isAwaited = true;
    return !isBehind;
  }

  /** Returns how many responses wait for the client's window. */
  unread(): number {
    return this.queue?.messages ?? 0;
  }

  /** Ends the call with OK, behind what waits. */
  end(trailers?: MetadataFields): void {
    if (this.isOver) return;
    if (!this.isHeadSent) this.sendHead(HEAD_BLOCK);
    this.finish(trailers === undefined ? OK_BLOCK : statusBlock({ status: STATUS.ok, message: '', trailers }, true));
  }

  /** Answers a stream of requests with one response. */
  respond(response: Response, trailers?: MetadataFields): void {
    this.write(response);
    this.end(trailers);
  }
}
