/**
 * What a connection does with each frame: RFC 9113 §6.
 *
 * F1. Header blocks are decoded in the order in which they arrive, those of refused streams as well, because all share
 *     one table of fields. Between the frames of a block no other frame may come (§4.3).
 * F2. Frames of streams that this side has reset are counted and dropped. Other frames of closed streams are errors,
 *     except WINDOW_UPDATE, RST_STREAM and PRIORITY (§5.1).
 * F3. Frames that cost the peer less than this side are counted a second at a time.
 */
import { HeaderDecoder } from '../hpack/header-decoder.ts';
import type { DecodedField } from '../hpack/header-field.ts';
import type { Timers } from '../timers.ts';
import { type Connection, DRAIN_PING, type StreamUser } from './connection.ts';
import { type FrameSink, uint31 } from './frame-reader.ts';
import { addFragment, beginBlock, type HeaderBlock } from './header-block.ts';
import { ERROR, FLAG, FRAME } from './protocol.ts';
import { Rate } from './rate.ts';
import { requestHead, trailersProblem } from './request-head.ts';
import { applySettings, type SettingsSink } from './settings.ts';
import type { Stream } from './stream.ts';

const PRIORITY_BYTES = 5;
const PING_BYTES = 8;
const NUMBER_BYTES = 4;
const GOAWAY_BYTES_MIN = 8;
const NO_PAYLOAD = Buffer.alloc(0);

export class FrameHandlers implements FrameSink, SettingsSink {
  readonly #connection: Connection;
  readonly #user: StreamUser;
  readonly #decoder: HeaderDecoder;
  /** The header block whose end has not arrived (F1). */
  #block: HeaderBlock | undefined;
  /** F3. */
  readonly #resets: Rate;
  readonly #streamErrors: Rate;
  readonly #pings: Rate;
  readonly #settings: Rate;
  readonly #useless: Rate;

  constructor(connection: Connection, user: StreamUser, timers: Timers) {
    const { limits } = connection;
    this.#connection = connection;
    this.#user = user;
    this.#decoder = new HeaderDecoder({
      tableBytesMax: limits.headerTableBytesMax,
      listBytesMax: limits.headerListBytesMax,
      fieldsMax: limits.headerFieldsMax,
    });
    this.#resets = new Rate(limits.resetsPerSecondMax, timers);
    this.#streamErrors = new Rate(limits.streamErrorsPerSecondMax, timers);
    this.#pings = new Rate(limits.pingsPerSecondMax, timers);
    this.#settings = new Rate(limits.settingsPerSecondMax, timers);
    this.#useless = new Rate(limits.uselessFramesPerSecondMax, timers);
  }

  onBroken(error: number, what: string): void {
    this.#connection.fail(error, what);
  }

  onFrame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
    const connection = this.#connection;
    if (!connection.keeper.isGreeted && (type !== FRAME.settings || (flags & FLAG.ack) !== 0)) {
      connection.fail(ERROR.protocolError, 'the first frame is not SETTINGS');
    } else if (this.#block !== undefined && (type !== FRAME.continuation || id !== this.#block.streamId)) {
      connection.fail(ERROR.protocolError, 'another frame inside a header block');
    } else if (type === FRAME.headers) this.#headers(flags, id, bytes, start, end);
    else if (type === FRAME.data) this.#data(flags, id, bytes, start, end);
    else this.#other(type, flags, id, bytes.subarray(start, end));
    return !connection.isOver;
  }

  #other(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case FRAME.windowUpdate:
        return this.#windowUpdate(id, payload);
      case FRAME.rstStream:
        return this.#rstStream(id, payload);
      case FRAME.ping:
        return this.#ping(flags, id, payload);
      case FRAME.settings:
        return this.#settingsFrame(flags, id, payload);
      case FRAME.continuation:
        return this.#continuation(flags, payload);
      case FRAME.priority:
        return this.#priority(id, payload);
      case FRAME.goaway:
        return this.#goaway(id, payload);
      case FRAME.pushPromise:
        return this.#connection.fail(ERROR.protocolError, 'PUSH_PROMISE from a client');
      default:
        return this.#uselessFrame();
    }
  }

  #uselessFrame(): void {
    if (this.#useless.isExceeded()) this.#connection.floods('uselessFramesPerSecondMax');
  }

  /** §6.1 */
  #data(flags: number, id: number, bytes: Buffer, frameStart: number, frameEnd: number): void {
    const connection = this.#connection;
    if (id === 0) return connection.fail(ERROR.protocolError, 'DATA on stream 0');
    let start = frameStart;
    let end = frameEnd;
    if ((flags & FLAG.padded) !== 0) {
      end -= bytes[start] ?? 0;
      start++;
      if (start > end || frameStart === frameEnd) return this.#overpadded();
    }
    if (!connection.receiver.received(frameEnd - frameStart)) {
      return connection.fail(ERROR.flowControlError, 'more DATA than the window of the connection');
    }
    const stream = connection.streams.get(id);
    if (stream === undefined) return this.#dataOfClosed(id);
    if (stream.isRemoteClosed) return this.#streamError(stream, ERROR.streamClosed);
    stream.receiveWindow -= frameEnd - frameStart;
    if (stream.receiveWindow < 0) return this.#streamError(stream, ERROR.flowControlError);
    stream.uncreditedBytes += frameEnd - frameStart;
    stream.bodyBytes += end - start;
    const isEnd = (flags & FLAG.endStream) !== 0;
    if (isEnd) stream.isRemoteClosed = true;
    else if (start === end) this.#uselessFrame();
    if (start < end && !stream.isOver) stream.onData(bytes, start, end);
    if (isEnd) this.#end(stream);
    else connection.receiver.credit(stream);
  }

  /** F2 */
  #dataOfClosed(id: number): void {
    const state = this.#connection.streams.stateOf(id);
    if (state === 'idle' || state === 'skipped') {
      return this.#connection.fail(ERROR.protocolError, `DATA on stream ${id}, which is not open`);
    }
    if (state === 'closed') this.#refuseStream(id, ERROR.streamClosed);
  }

  #overpadded(): void {
    this.#connection.fail(ERROR.protocolError, 'more padding than payload');
  }

  /** The client has ended its side. */
  #end(stream: Stream): void {
    if (stream.isGone) return;
    stream.isRemoteClosed = true;
    if (stream.contentLength >= 0 && stream.contentLength !== stream.bodyBytes) {
      return this.#streamError(stream, ERROR.protocolError); // §8.1.1
    }
    if (!stream.isOver) stream.onEnd();
  }

  /** An error that costs the client the stream (§5.4.2). */
  #streamError(stream: Stream, error: number): void {
    this.#connection.writeReset(stream.id, error);
    this.#connection.streamLost(stream);
    if (this.#streamErrors.isExceeded()) this.#connection.floods('streamErrorsPerSecondMax');
  }

  /** As above, for a stream that is not open. */
  #refuseStream(id: number, error: number): void {
    this.#connection.writeReset(id, error);
    if (this.#streamErrors.isExceeded()) this.#connection.floods('streamErrorsPerSecondMax');
  }

  /** §6.2 */
  #headers(flags: number, id: number, bytes: Buffer, frameStart: number, frameEnd: number): void {
    const connection = this.#connection;
    if ((id & 1) === 0) return connection.fail(ERROR.protocolError, `HEADERS on stream ${id}`);
    let start = frameStart;
    let end = frameEnd;
    if ((flags & FLAG.padded) !== 0) {
      end -= bytes[start] ?? 0;
      start++;
      if (start > end || frameStart === frameEnd) return this.#overpadded();
    }
    if ((flags & FLAG.priority) !== 0) {
      start += PRIORITY_BYTES;
      if (start > end) return connection.fail(ERROR.frameSizeError, 'HEADERS without its priority');
    }
    const isEnd = (flags & FLAG.endStream) !== 0;
    if ((flags & FLAG.endHeaders) !== 0) return this.#headerBlock(id, isEnd, bytes, start, end);
    this.#block = beginBlock(id, isEnd);
    connection.hasOpenBlock = true;
    this.#fragment(this.#block, bytes.subarray(start, end));
  }

  /** §6.10 */
  #continuation(flags: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) return this.#connection.fail(ERROR.protocolError, 'CONTINUATION outside a header block');
    this.#fragment(block, payload);
    if (this.#connection.isOver || (flags & FLAG.endHeaders) === 0) return;
    this.#block = undefined;
    this.#connection.hasOpenBlock = false;
    this.#connection.addUnfinished(-block.bytes);
    const whole = Buffer.concat(block.parts);
    this.#headerBlock(block.streamId, block.isEndStream, whole, 0, whole.length);
  }

  #fragment(block: HeaderBlock, fragment: Buffer): void {
    const limit = addFragment(block, this.#connection.limits, fragment);
    if (limit !== undefined) return this.#connection.floods(limit);
    this.#connection.addUnfinished(fragment.length);
  }

  /** F1 */
  #headerBlock(id: number, isEnd: boolean, bytes: Buffer, start: number, end: number): void {
    const connection = this.#connection;
    let fields: readonly DecodedField[] | undefined;
    try {
      fields = this.#decoder.decode(bytes, start, end);
    } catch (error) {
      return connection.fail(ERROR.compressionError, String(error));
    }
    if (fields === undefined) connection.totals.refused('headerListBytesMax');
    const stream = connection.streams.get(id);
    if (stream !== undefined) return this.#trailers(stream, fields, isEnd);
    switch (connection.streams.stateOf(id)) {
      case 'idle':
        return this.#open(id, fields, isEnd);
      case 'closed':
        return connection.fail(ERROR.streamClosed, `HEADERS on stream ${id}, which is closed`);
      case 'skipped':
        return connection.fail(ERROR.protocolError, `stream ${id} begins after stream ${connection.streams.lastId}`);
      case 'reset':
        return; // F2
    }
  }

  #open(id: number, fields: readonly DecodedField[] | undefined, isEnd: boolean): void {
    const connection = this.#connection;
    const { limits, totals, streams } = connection;
    streams.use(id);
    const limit =
      streams.size >= limits.streamsPerConnectionMax
        ? 'streamsPerConnectionMax'
        : totals.hasRoomForStream(connection)
          ? undefined
          : 'streamsMax';
    if (limit !== undefined) totals.refused(limit);
    if (limit !== undefined || connection.drainState === 'final') {
      return connection.writeReset(id, ERROR.refusedStream);
    }
    const head = fields === undefined ? undefined : requestHead(fields);
    if (head?.malformed !== undefined) return this.#refuseStream(id, ERROR.protocolError);
    const stream = this.#user.open(connection, id, head, isEnd);
    if (stream === undefined) return;
    connection.add(stream);
    if (head !== undefined && head.keptBytes > 0) stream.hold(head.keptBytes);
    stream.onOpen();
    if (isEnd) this.#end(stream);
  }

  /** §8.1 */
  #trailers(stream: Stream, fields: readonly DecodedField[] | undefined, isEnd: boolean): void {
    if (stream.isRemoteClosed) return this.#streamError(stream, ERROR.streamClosed);
    if (!isEnd || fields === undefined || trailersProblem(fields) !== undefined) {
      return this.#streamError(stream, ERROR.protocolError);
    }
    this.#end(stream);
  }

  /** §6.3. Priorities of streams are not used (§5.3.2). */
  #priority(id: number, payload: Buffer): void {
    if (id === 0) return this.#connection.fail(ERROR.protocolError, 'PRIORITY on stream 0');
    if (payload.length !== PRIORITY_BYTES) {
      const stream = this.#connection.streams.get(id);
      if (stream !== undefined) return this.#streamError(stream, ERROR.frameSizeError);
      return this.#connection.fail(ERROR.frameSizeError, `a PRIORITY frame of ${payload.length} bytes`);
    }
    this.#uselessFrame();
  }

  /** §6.4 */
  #rstStream(id: number, payload: Buffer): void {
    const connection = this.#connection;
    if (id === 0) return connection.fail(ERROR.protocolError, 'RST_STREAM on stream 0');
    if (payload.length !== NUMBER_BYTES) {
      return connection.fail(ERROR.frameSizeError, `an RST_STREAM frame of ${payload.length} bytes`);
    }
    const stream = connection.streams.get(id);
    if (stream !== undefined) connection.streamLost(stream);
    else if (this.#isUnused(id)) {
      return connection.fail(ERROR.protocolError, `RST_STREAM on stream ${id}, which is not open`);
    }
    if (this.#resets.isExceeded()) connection.floods('resetsPerSecondMax');
  }

  #isUnused(id: number): boolean {
    const state = this.#connection.streams.stateOf(id);
    return state === 'idle' || state === 'skipped';
  }

  /** §6.5 */
  #settingsFrame(flags: number, id: number, payload: Buffer): void {
    const connection = this.#connection;
    if (id !== 0) return connection.fail(ERROR.protocolError, `SETTINGS on stream ${id}`);
    if ((flags & FLAG.ack) !== 0) {
      if (payload.length > 0) return connection.fail(ERROR.frameSizeError, 'an acknowledgement with settings');
      if (connection.keeper.isSettled) return this.#uselessFrame();
      connection.keeper.isSettled = true;
      return this.#decoder.settingsAcknowledged();
    }
    if (this.#settings.isExceeded()) return connection.floods('settingsPerSecondMax');
    const problem = applySettings(payload, this);
    if (problem !== undefined) return connection.fail(problem.error, problem.what);
    connection.keeper.isGreeted = true;
    connection.writeFrame(FRAME.settings, FLAG.ack, 0, NO_PAYLOAD);
    connection.sender.pump();
  }

  headerTableBytes(bytes: number): void {
    this.#connection.encoder.setTableBytesMax(bytes);
    this.#connection.isHeaderPrefixDue = true;
  }

  streamWindowBytes(bytes: number): boolean {
    return this.#connection.sender.setStreamWindow(bytes, this.#connection.streams.all());
  }

  /** §6.7 */
  #ping(flags: number, id: number, payload: Buffer): void {
    const connection = this.#connection;
    if (id !== 0) return connection.fail(ERROR.protocolError, `PING on stream ${id}`);
    if (payload.length !== PING_BYTES) {
      return connection.fail(ERROR.frameSizeError, `a PING frame of ${payload.length} bytes`);
    }
    if ((flags & FLAG.ack) !== 0) {
      if (payload.equals(DRAIN_PING)) connection.drainAnswered();
      return this.#uselessFrame();
    }
    if (this.#pings.isExceeded()) return connection.floods('pingsPerSecondMax');
    // Clients of gRPC know this text, and ping less often after it.
    if (connection.keeper.isPingTooEarly()) return connection.floods('pingStrikesMax', 'too_many_pings');
    connection.writeFrame(FRAME.ping, FLAG.ack, 0, payload);
  }

  /** §6.8. The client ends the connection when its calls are done. */
  #goaway(id: number, payload: Buffer): void {
    if (id !== 0) return this.#connection.fail(ERROR.protocolError, `GOAWAY on stream ${id}`);
    if (payload.length < GOAWAY_BYTES_MIN) {
      return this.#connection.fail(ERROR.frameSizeError, `a GOAWAY frame of ${payload.length} bytes`);
    }
    this.#uselessFrame();
  }

  /** §6.9 */
  #windowUpdate(id: number, payload: Buffer): void {
    const connection = this.#connection;
    if (payload.length !== NUMBER_BYTES) {
      return connection.fail(ERROR.frameSizeError, `a WINDOW_UPDATE frame of ${payload.length} bytes`);
    }
    const bytes = uint31(payload, 0);
    if (id === 0) {
      if (bytes === 0) return connection.fail(ERROR.protocolError, 'a WINDOW_UPDATE by 0');
      if (connection.sender.grow(bytes)) return;
      return connection.fail(ERROR.flowControlError, 'the window of the connection is too large');
    }
    const stream = connection.streams.get(id);
    if (stream !== undefined) {
      if (bytes === 0) return this.#streamError(stream, ERROR.protocolError);
      if (!connection.sender.growStream(stream, bytes)) return this.#streamError(stream, ERROR.flowControlError);
      return connection.sender.pump();
    }
    if (this.#isUnused(id)) {
      connection.fail(ERROR.protocolError, `WINDOW_UPDATE on stream ${id}, which is not open`);
    }
  }
}
