/**
 * One stream of a connection: RFC 9113 §5. A subclass is what uses it, so that a call needs one object.
 *
 * ST1. `onData`, `onEnd` and `onReset` are called by the connection. After `onReset`, or after this side has ended the
 *      stream, none is called again.
 * ST2. A stream stays with its connection until both sides have ended it, or one has reset it.
 */
import type { Http2Limits } from './limits.ts';
import type { Output } from './output.ts';
import { FLAG } from './protocol.ts';
import { SendQueue } from './send-queue.ts';

/** What a stream needs of its connection. */
export interface StreamHost {
  readonly limits: Http2Limits;
  readonly output: Output;
  readonly sender: StreamSender;
  readonly receiver: StreamReceiver;
  readonly keeper: { readonly ticks: number; hasAnswered: boolean };
  /** What the user keeps about the connection. */
  userState: unknown;
  /** Writes a header block, in several frames if it is large. */
  writeHeaders(streamId: number, block: Buffer, flags: number): void;
  /** The next header block must be written with `writeHeaders`. */
  readonly isHeaderPrefixDue: boolean;
  /** This side has sent the last frame of the stream. */
  localEnded(stream: Stream): void;
  resetStream(stream: Stream, error: number): void;
}

interface StreamSender {
  /** The connection's window; the peer's. */
  window: number;
  /** The window of a new stream; the peer's setting. */
  readonly streamWindow: number;
  readonly frameBytesMax: number;
  /** The socket has more than it takes. */
  readonly isBehind: boolean;
  queued(stream: Stream, bytes: number): void;
}

interface StreamReceiver {
  held(stream: Stream, bytes: number): void;
  /** Of what is held, so much is complete but not read by its method. */
  unreadHeld(bytes: number): void;
  messageDone(stream: Stream): void;
  credit(stream: Stream): void;
}

export abstract class Stream {
  readonly id: number;
  readonly host: StreamHost;

  /** What the client may still send before it has to wait. */
  receiveWindow: number;
  /** Of what it has sent, bytes that no window update has returned yet. */
  uncreditedBytes = 0;
  /** Bytes that are kept because a message is not whole, or because the user reads no further. */
  heldBytes = 0;
  /** Of these, bytes that have arrived while the user reads no further. */
  unreadBytes = 0;
  /** The body's length so far, and as the request stated it; -1 without. */
  bodyBytes = 0;
  readonly contentLength: number;
  /** Whether the user reads no further for now. The client gets no window updates then. */
  isPaused = false;
  /** Since which tick of the connection its client owes the rest of a request or message; -1 if it does not. */
  owedSinceTick: number;
  /** The user has had a whole message. */
  hasMessage = false;
  /** The client has ended its side. */
  isRemoteClosed = false;

  /** What may still be sent before the client has to update the window; may be negative (§6.9.2). */
  sendWindow: number;
  /** What waits to be sent; undefined as long as nothing ever did. */
  queue: SendQueue | undefined;
  isHeadSent = false;
  /** This side has ended its half, or the stream is reset. What is in `queue` may still be on its way. */
  isOver = false;
  /** The connection has let go of the stream. */
  isGone = false;

  constructor(host: StreamHost, id: number, contentLength: number) {
    this.host = host;
    this.id = id;
    this.contentLength = contentLength;
    this.receiveWindow = host.limits.streamWindowBytes;
    this.sendWindow = host.sender.streamWindow;
    this.owedSinceTick = host.keeper.ticks;
  }

  /** The connection has the stream, and nothing of its body was passed on yet. */
  onOpen(): void {}
  /** Takes a part of the body. It must be copied to be kept. */
  abstract onData(bytes: Buffer, start: number, end: number): void;
  /** The client has ended its side; there was nothing wrong with the body's length. */
  abstract onEnd(): void;
  /** The stream has ended, not by this side: the client has reset it, or the connection has ended. */
  abstract onReset(): void;
  /** The client is late with what it owes. */
  abstract onLate(): void;
  /** All that waited has been sent. */
  abstract onSent(): void;

  /** Whether a message of so many bytes can be sent at once, in one frame, in the order of things. */
  canSend(bytes: number): boolean {
    const { sender } = this.host;
    return (
      bytes <= this.sendWindow &&
      bytes <= sender.window &&
      bytes <= sender.frameBytesMax &&
      !sender.isBehind &&
      (this.queue === undefined || this.queue.bytes === 0)
    );
  }

  /** Counts a DATA frame that the caller writes into the output itself. */
  takeWindow(bytes: number): void {
    this.sendWindow -= bytes;
    this.host.sender.window -= bytes;
    this.host.keeper.hasAnswered = true;
  }

  /** Sends a message when the windows allow it. The bytes must not change afterwards. */
  send(bytes: Buffer): void {
    this.queue ??= new SendQueue();
    this.queue.push(bytes);
    this.host.sender.queued(this, bytes.length);
  }

  /** Sends the head of the answer. */
  sendHead(block: Buffer): void {
    this.isHeadSent = true;
    this.host.writeHeaders(this.id, block, FLAG.none);
  }

  /** Ends this side with trailers, behind all that waits. The stream is over for the user. */
  finish(trailers: Buffer): void {
    this.isOver = true;
    if (this.queue !== undefined && this.queue.bytes > 0) {
      this.queue.trailers = trailers;
      return;
    }
    this.finishNow(trailers);
  }

  finishNow(trailers: Buffer): void {
    this.isHeadSent = true;
    this.host.writeHeaders(this.id, trailers, FLAG.endStream);
    this.host.localEnded(this);
  }

  /** Resets the stream. The user hears nothing more. */
  reset(error: number): void {
    this.isOver = true;
    this.host.resetStream(this, error);
  }

  /** Counts bytes that the user keeps, or keeps no more if negative. */
  hold(bytes: number): void {
    if (this.isGone) return;
    this.heldBytes += bytes;
    this.host.receiver.held(this, bytes);
  }

  /** As above, for bytes that arrive while the user reads no further. */
  holdUnread(bytes: number): void {
    if (this.isGone) return;
    this.unreadBytes += bytes;
    this.host.receiver.unreadHeld(bytes);
    this.hold(bytes);
  }

  /** The user has a whole message; the client owes nothing until the next one begins. */
  messageDone(): void {
    this.owedSinceTick = -1;
    this.hasMessage = true;
    this.host.receiver.messageDone(this);
  }

  /** Whether its client has yet to send the rest of its request, or the first message of a stream. */
  get isAwaited(): boolean {
    return !this.isRemoteClosed && !this.isOver && (!this.hasMessage || this.owedSinceTick >= 0);
  }

  /** A message has begun and is not whole. */
  messageBegun(): void {
    if (this.owedSinceTick < 0) this.owedSinceTick = this.host.keeper.ticks;
  }

  pause(): void {
    this.isPaused = true;
  }

  /** The caller has taken what was kept. */
  resume(): void {
    this.isPaused = false;
    this.host.receiver.credit(this);
  }
}
