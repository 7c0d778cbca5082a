/** A call with one request and one response. */
import { FLAG, FRAME, FRAME_HEAD_BYTES } from '../http2/protocol.ts';
import { HEAD_BLOCK, OK_BLOCK, statusBlock } from './header-blocks.ts';
import { MessageReader, type MessageSink, PREFIX_BYTES } from './message-reader.ts';
import type { MetadataFields } from './metadata.ts';
import { ServerCall } from './server-call.ts';
import { STATUS } from './status.ts';

/** The frames of an answer, besides its message. */
const ANSWER_BYTES = 3 * FRAME_HEAD_BYTES + HEAD_BLOCK.length + PREFIX_BYTES + OK_BLOCK.length;
const END = FLAG.endHeaders | FLAG.endStream;

export class UnaryCall<Request, Response> extends ServerCall implements MessageSink {
  #reader: MessageReader | undefined;
  #request: Request | undefined;

  /** What the client asks. */
  get request(): Request {
    return this.#request as Request;
  }

  override onData(bytes: Buffer, start: number, end: number): void {
    if (this.#reader === undefined && isOneMessage(bytes, start, end)) {
      this.onMessage(false, bytes.subarray(start + PREFIX_BYTES, end));
      return;
    }
    this.#reader ??= new MessageReader(this);
    this.#reader.read(bytes, start, end);
  }

  onMessage(isCompressed: boolean, message: Buffer): boolean {
    if (this.hasMessage) {
      this.giveUp(STATUS.unimplemented, 'the call has more than one request');
      return false;
    }
    if (!this.isLengthAllowed(message.length)) return false;
    const decoded = this.decode(isCompressed, message);
    if (decoded === undefined) return false;
    this.#request = decoded.request as Request;
    this.hasMessage = true;
    this.host.receiver.messageDone(this);
    return true;
  }

  override onEnd(): void {
    if (!this.hasMessage || this.#reader?.isInside === true) {
      return this.giveUp(STATUS.internal, 'the call ended before its request was whole');
    }
    this.owedSinceTick = -1;
    try {
      this.method.run(this);
    } catch (error) {
      this.threw(error);
    }
  }

  override onSent(): void {}

  /** Answers with OK. */
  respond(response: Response, trailers?: MetadataFields): void {
    if (this.isOver) return;
    const message = this.encode(response);
    if (message === undefined) return;
    const bytes = PREFIX_BYTES + message.length;
    if (trailers !== undefined || this.isHeadSent || this.host.isHeaderPrefixDue || !this.canSend(bytes)) {
      this.sendMessage(message);
      return this.finish(trailers === undefined ? OK_BLOCK : statusBlock({ ...OK, trailers }, true));
    }
    const { output } = this.host;
    const { id } = this;
    output.reserve(ANSWER_BYTES + message.length);
    output.head(HEAD_BLOCK.length, FRAME.headers, FLAG.endHeaders, id);
    output.bytes(HEAD_BLOCK);
    output.head(bytes, FRAME.data, FLAG.none, id);
    output.octet(0);
    output.uint32(message.length);
    output.bytes(message);
    output.head(OK_BLOCK.length, FRAME.headers, END, id);
    output.bytes(OK_BLOCK);
    this.takeWindow(bytes);
    this.isOver = true;
    this.isHeadSent = true;
    this.host.localEnded(this);
  }
}

const OK = { status: STATUS.ok, message: '' } as const;

/** Whether the bytes are exactly one message, which is not compressed. */
function isOneMessage(bytes: Buffer, start: number, end: number): boolean {
  return (
    end - start >= PREFIX_BYTES && bytes[start] === 0 && bytes.readUInt32BE(start + 1) === end - start - PREFIX_BYTES
  );
}
