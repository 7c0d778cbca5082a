/**
 * The server side of one HTTP/2 connection: RFC 9113. This file has its life, its streams and what it sends;
 * frame-handlers.ts has what it does with frames, and serve-connection.ts puts both together.
 *
 * C1. Each fault of the peer is answered with the error that RFC 9113 names for it: RST_STREAM if the connection can go
 *     on without the stream, otherwise GOAWAY. No input makes a method throw.
 * C2. Everything that a peer can make this side keep or do has a limit (limits.ts). After an error the connection takes
 *     nothing in, and closes when its GOAWAY is sent or a tick later.
 * C3. A drain loses no call: it is announced with the highest stream id first, and the last id that is served follows
 *     when the client has answered a PING, or after a whole second. No later GOAWAY raises that id (§6.8).
 */
import type { Duplex } from 'node:stream';
import { HeaderEncoder } from '../hpack/header-encoder.ts';
import type { Timers } from '../timers.ts';
import type { FrameReader } from './frame-reader.ts';
import { Keeper, TICK_MS } from './keeper.ts';
import { FRAME_BYTES_MAX, type Http2Limits } from './limits.ts';
import { Output } from './output.ts';
import { ERROR, FLAG, FRAME, FRAME_HEAD_BYTES, STREAM_ID_MAX, WINDOW_BYTES_INITIAL } from './protocol.ts';
import { Rate } from './rate.ts';
import { Receiver } from './receiver.ts';
import type { RequestHead } from './request-head.ts';
import { Sender } from './sender.ts';
import { settingsPayload } from './settings.ts';
import type { Stream, StreamHost } from './stream.ts';
import { StreamTable } from './stream-table.ts';
import type { CountedConnection, Totals } from './totals.ts';

/** What uses connections. */
export interface StreamUser {
  /**
   * Begins a stream. Returns undefined if the user has answered it already (`answerAtOnce`). A missing head means that
   * the header list was too large.
   */
  open(connection: Connection, id: number, head: RequestHead | undefined, isEnd: boolean): Stream | undefined;
}

export interface ConnectionDeps {
  readonly socket: Duplex;
  readonly timers: Timers;
  readonly totals: Totals;
  /** Calls the work of one read at once. */
  readonly aroundRead?: ((work: () => void) => void) | undefined;
  /** What the connection holds has changed. */
  readonly onHeld?: ((held: HeldBytes) => void) | undefined;
  /** The connection has ended. */
  readonly onClose: () => void;
}

/** What a connection holds for its client. */
export interface HeldBytes {
  /** Bytes of frames and messages that are not whole. */
  readonly incompleteBytes: number;
  /** Bytes of answers that wait for a window or for the socket. */
  readonly waitingBytes: number;
}

/** What the socket may have not sent yet. Above it, nothing is read. */
const SOCKET_BYTES_MAX = 256 << 10;
const DEBUG_BYTES_MAX = 256;
/** How long a connection that has ended may take to send its last answers. */
const LINGER_TICKS_MAX = 5;
/** Payloads of PING frames. The first shows by its answer that the client has seen our GOAWAY. */
export const DRAIN_PING = Buffer.from('draining', 'latin1');
const KEEP_ALIVE_PING = Buffer.from('is there', 'latin1');

export class Connection implements CountedConnection, StreamHost, HeldBytes {
  readonly limits: Http2Limits;
  readonly totals: Totals;
  readonly keeper: Keeper;
  readonly streams: StreamTable;
  readonly output: Output;
  readonly sender: Sender;
  readonly receiver: Receiver;
  readonly encoder = new HeaderEncoder();
  /** What the user keeps about the connection. */
  userState: unknown;
  /** The connection has failed or is closed. */
  isOver = false;
  isHeaderPrefixDue = false;
  /** A header block has begun and is not whole. */
  hasOpenBlock = false;
  drainState: 'no' | 'announced' | 'final' = 'no';
  #drainedAtTick = 0;
  /** The last stream id of the last GOAWAY. */
  #goawayId = STREAM_ID_MAX;
  readonly #socket: Duplex;
  readonly #aroundRead: ConnectionDeps['aroundRead'];
  readonly #onClose: () => void;
  readonly #onHeld: ((held: HeldBytes) => void) | undefined;
  /** As it was told last. */
  #toldIncomplete = 0;
  #toldWaiting = 0;
  #reader: FrameReader | undefined;
  #unfinishedBytes = 0;
  #partialFrameBytes = 0;
  /** The number of the frame that was not whole at the last tick, and how many ticks it has not been. */
  #partialFrame = -1;
  #partialTicks = 0;
  #lingerTicks = 0;
  #outputBytes = 0;
  #isClosed = false;

  constructor({ socket, timers, totals, aroundRead, onHeld, onClose }: ConnectionDeps) {
    const { limits } = totals;
    this.limits = limits;
    this.totals = totals;
    this.#socket = socket;
    this.#onClose = onClose;
    this.#aroundRead = aroundRead;
    this.#onHeld = onHeld;
    this.keeper = new Keeper(limits, timers);
    this.streams = new StreamTable(2 * limits.streamsPerConnectionMax);
    this.output = new Output(socket, timers, () => this.#flushed());
    this.sender = new Sender(this, new Rate(limits.tinyFramesPerSecondMax, timers));
    this.receiver = new Receiver(this);
  }

  /** Begins to read. */
  start(reader: FrameReader): void {
    const socket = this.#socket;
    this.#reader = reader;
    this.totals.connections.add(this);
    this.#greet();
    const around = this.#aroundRead;
    socket.on('data', (chunk: Buffer) => {
      if (around === undefined) this.#read(reader, chunk);
      else around(() => this.#read(reader, chunk));
    });
    socket.on('drain', () => this.#drained());
    socket.on('error', () => undefined); // a broken connection is no news: it is closed
    socket.on('end', () => this.destroy());
    socket.on('close', () => this.destroy());
    socket.resume();
  }

  /** Bytes of frames and messages that are not whole. */
  get unfinishedBytes(): number {
    return this.#unfinishedBytes;
  }

  /** Bytes of answers that wait for a window or for the socket. */
  get outputBytes(): number {
    return this.#outputBytes;
  }

  awaitedStreams(): number {
    return this.streams.all().reduce((count, stream) => (stream.isAwaited ? count + 1 : count), 0);
  }

  get incompleteBytes(): number {
    return this.#unfinishedBytes - this.receiver.unreadBytes;
  }

  get waitingBytes(): number {
    return this.#outputBytes + this.#socket.writableLength;
  }

  #tellHeld(): void {
    if (this.#onHeld === undefined) return;
    const { incompleteBytes, waitingBytes } = this;
    if (incompleteBytes === this.#toldIncomplete && waitingBytes === this.#toldWaiting) return;
    this.#toldIncomplete = incompleteBytes;
    this.#toldWaiting = waitingBytes;
    this.#onHeld(this);
  }

  #greet(): void {
    this.writeFrame(FRAME.settings, FLAG.none, 0, settingsPayload(this.limits));
    const more = this.limits.connectionWindowBytes - WINDOW_BYTES_INITIAL;
    if (more > 0) this.writeNumberFrame(FRAME.windowUpdate, 0, more);
    this.output.flush();
  }

  #read(reader: FrameReader, chunk: Buffer): void {
    if (this.isOver) return;
    this.keeper.heard = true;
    this.output.hold();
    reader.read(chunk);
    if (this.isOver) return; // nothing is counted of it any more
    const { unfinishedBytes } = reader;
    if (unfinishedBytes !== this.#partialFrameBytes) {
      this.addUnfinished(unfinishedBytes - this.#partialFrameBytes);
      this.#partialFrameBytes = unfinishedBytes;
    }
    // Without open calls there is no answer to wait for.
    this.output.release(this.streams.size === 0);
    this.#tellHeld();
  }

  #flushed(): void {
    this.#tellHeld();
    if (this.#socket.writableLength <= SOCKET_BYTES_MAX || this.isOver) return;
    if (!this.sender.isBehind) this.#socket.pause();
    this.sender.isBehind = true;
  }

  #drained(): void {
    if (this.isOver || !this.sender.isBehind) return;
    this.sender.isBehind = false;
    this.#socket.resume();
    this.sender.pump();
    for (const stream of this.streams.all()) this.sender.wake(stream);
  }

  // What streams and frame handlers use.

  addUnfinished(bytes: number): void {
    this.#unfinishedBytes += bytes;
    this.totals.addUnfinished(bytes);
  }

  addOutput(bytes: number): void {
    this.#outputBytes += bytes;
    this.totals.addOutput(this, bytes);
  }

  writeFrame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    this.output.reserve(FRAME_HEAD_BYTES + payload.length);
    this.output.head(payload.length, type, flags, streamId);
    this.output.bytes(payload);
  }

  /** RST_STREAM or WINDOW_UPDATE. */
  writeNumberFrame(type: number, streamId: number, value: number): void {
    this.output.reserve(FRAME_HEAD_BYTES + 4);
    this.output.head(4, type, FLAG.none, streamId);
    this.output.uint32(value);
  }

  /** Writes a header block, in several frames if it is large. */
  writeHeaders(streamId: number, block: Buffer, flags: number): void {
    const prefix = this.encoder.takePrefix();
    this.isHeaderPrefixDue = false;
    const whole = prefix.length > 0 ? Buffer.concat([prefix, block]) : block;
    this.keeper.hasAnswered = true;
    let at = 0;
    do {
      const end = Math.min(whole.length, at + FRAME_BYTES_MAX);
      const type = at === 0 ? FRAME.headers : FRAME.continuation;
      const isLast = end === whole.length ? FLAG.endHeaders : FLAG.none;
      this.writeFrame(type, (at === 0 ? flags : FLAG.none) | isLast, streamId, whole.subarray(at, end));
      at = end;
    } while (at < whole.length);
  }

  /** Answers a request that gets no stream with one header block. */
  answerAtOnce(streamId: number, block: Buffer, isEnd: boolean): void {
    this.writeHeaders(streamId, block, FLAG.endStream);
    if (!isEnd) this.writeReset(streamId, ERROR.noError);
  }

  writeReset(streamId: number, error: number): void {
    this.streams.noteReset(streamId);
    this.writeNumberFrame(FRAME.rstStream, streamId, error);
  }

  add(stream: Stream): void {
    this.streams.add(stream);
    this.totals.streams++;
  }

  /** This side has sent the last frame of the stream. A client that has not ended its own may stop sending (§8.1). */
  localEnded(stream: Stream): void {
    if (!stream.isRemoteClosed) this.writeReset(stream.id, ERROR.noError);
    this.#remove(stream);
  }

  resetStream(stream: Stream, error: number): void {
    if (stream.isGone) return;
    this.writeReset(stream.id, error);
    this.sender.drop(stream);
    this.#remove(stream);
  }

  /** The client has reset the stream, or has lost it by an error. */
  streamLost(stream: Stream): void {
    this.sender.drop(stream);
    this.#remove(stream);
    if (stream.isOver) return;
    stream.isOver = true;
    stream.onReset();
  }

  #remove(stream: Stream): void {
    if (stream.isGone) return;
    stream.isGone = true;
    this.receiver.left(stream);
    this.streams.delete(stream.id);
    this.totals.streams--;
    if (this.drainState === 'final' && this.streams.size === 0 && !this.isOver) this.#hangUp();
  }

  // How it ends.

  /** Begins a drain (C3). */
  drain(): void {
    if (this.isOver || this.drainState !== 'no') return;
    this.drainState = 'announced';
    this.#drainedAtTick = this.keeper.ticks;
    this.#writeGoaway(STREAM_ID_MAX, ERROR.noError, 'the server shuts down');
    this.writeFrame(FRAME.ping, FLAG.none, 0, DRAIN_PING);
  }

  /** The client knows of the drain: from now on, new streams are refused. */
  drainAnswered(): void {
    if (this.isOver || this.drainState !== 'announced') return;
    this.drainState = 'final';
    this.#writeGoaway(this.streams.lastId, ERROR.noError, 'the server shuts down');
    if (this.streams.size === 0) this.#hangUp();
  }

  /** Ends the connection with a GOAWAY. */
  fail(error: number, what: string): void {
    if (this.isOver) return;
    this.#writeGoaway(this.streams.lastId, error, what);
    this.#hangUp();
  }

  /** A frame goes beyond a limit. */
  floods(limit: keyof Http2Limits, what: string = limit): void {
    this.totals.refused(limit);
    this.fail(ERROR.enhanceYourCalm, what);
  }

  exceeded(limit: keyof Http2Limits): void {
    this.totals.refused(limit);
    this.#writeGoaway(this.streams.lastId, ERROR.enhanceYourCalm, limit);
    this.output.flush();
    this.destroy();
  }

  #writeGoaway(lastId: number, error: number, what: string): void {
    this.#goawayId = Math.min(this.#goawayId, lastId);
    const text = Buffer.from(what).subarray(0, DEBUG_BYTES_MAX);
    const payload = Buffer.alloc(8 + text.length);
    payload.writeUInt32BE(this.#goawayId, 0);
    payload.writeUInt32BE(error, 4);
    text.copy(payload, 8);
    this.writeFrame(FRAME.goaway, FLAG.none, 0, payload);
  }

  /** Sends what there is and closes; at the next tick if the client does not take it. */
  #hangUp(): void {
    this.output.flush();
    this.#stop();
    this.#socket.end();
    this.#socket.resume();
  }

  /** Gives the client some time to take the last answers. */
  #linger(): void {
    if (this.#socket.writableLength === 0 || ++this.#lingerTicks > LINGER_TICKS_MAX) this.destroy();
  }

  /** Ends the connection, after what was answered already. */
  close(): void {
    this.fail(ERROR.noError, 'the server shuts down');
  }

  /** Ends the connection now. */
  destroy(): void {
    this.#stop();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.totals.connections.delete(this);
    this.#socket.destroy();
    this.#onClose();
  }

  #stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#reader?.end();
    this.output.end();
    for (const stream of this.streams.all()) this.streamLost(stream);
    this.addUnfinished(-this.#unfinishedBytes);
  }

  /** Called once a second. */
  tick(): void {
    if (this.isOver) return this.#linger();
    const action = this.keeper.tick();
    if (action === 'closeUngreeted') return this.exceeded('prefaceMs');
    if (action === 'closeSilent') return this.exceeded('keepAliveTimeoutMs');
    if (action === 'closeUnsettled') {
      this.totals.refused('settingsAckMs');
      return this.fail(ERROR.settingsTimeout, 'the settings were not acknowledged');
    }
    if (action === 'ping') this.writeFrame(FRAME.ping, FLAG.none, 0, KEEP_ALIVE_PING);
    else if (this.output.unsentBytes === 0) this.output.shrink();
    this.streams.shrink();
    if (this.keeper.ticks > this.#drainedAtTick + 1) this.drainAnswered();
    this.#endLate();
    this.#countPartial();
    this.#tellHeld();
  }

  /** Closes a connection that does not finish a frame or a header block. */
  #countPartial(): void {
    const { unfinishedBytes = 0, frames = 0 } = this.#reader ?? {};
    const isSame = this.hasOpenBlock || (unfinishedBytes > 0 && frames === this.#partialFrame);
    this.#partialTicks = isSame ? this.#partialTicks + 1 : 0;
    this.#partialFrame = frames;
    if (this.#partialTicks * TICK_MS > this.limits.messageMs) this.exceeded('messageMs');
  }

  #endLate(): void {
    const late = this.keeper.tickBefore(this.limits.messageMs);
    const stalled = this.keeper.tickBefore(this.limits.stalledAnswerMs);
    for (const stream of this.streams.all()) {
      if (this.sender.isStalled(stream, stalled)) {
        this.totals.refused('stalledAnswerMs');
        this.resetStream(stream, ERROR.cancel);
      } else if (!stream.isOver && !stream.isPaused && stream.owedSinceTick >= 0 && stream.owedSinceTick < late) {
        this.totals.refused('messageMs');
        stream.onLate();
      }
    }
  }
}
