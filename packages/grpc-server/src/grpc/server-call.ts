/**
 * What unary calls and streams have in common.
 *
 * SC1. A call is answered at most once. What is written after its end, or after its client has given up, is dropped.
 * SC2. `onCancelled` is called once, and only if the call ends before it is answered: the client has reset the stream,
 *      its connection or its deadline is over, or it broke the protocol.
 * SC3. Nothing that a method throws goes further: the call is answered with INTERNAL.
 */
import { FLAG, FRAME, FRAME_HEAD_BYTES } from '../http2/protocol.ts';
import type { RequestHead } from '../http2/request-head.ts';
import { Stream, type StreamHost } from '../http2/stream.ts';
import type { CallConnection } from './call-connection.ts';
import type { CallHead } from './call-head.ts';
import { HEAD_BLOCK, headBlock, statusBlock } from './header-blocks.ts';
import type { Refusal } from './inflate.ts';
import { PREFIX_BYTES } from './message-reader.ts';
import { Metadata, type MetadataFields } from './metadata.ts';
import type { ServedMethod } from './method.ts';
import { STATUS } from './status.ts';

const NO_DEADLINE = Number.POSITIVE_INFINITY;

export abstract class ServerCall extends Stream {
  readonly method: ServedMethod;
  readonly #head: RequestHead;
  readonly #encoding: string;
  #metadata: Metadata | undefined;
  readonly #deadlineAtMs: number;
  /** Called when nobody waits for the answer any more (SC2). */
  onCancelled: (() => void) | undefined;

  constructor(host: StreamHost, id: number, head: RequestHead, call: CallHead, method: ServedMethod) {
    super(host, id, head.contentLength);
    this.method = method;
    this.#head = head;
    this.#encoding = call.encoding;
    this.#deadlineAtMs = call.timeoutMs === undefined ? NO_DEADLINE : this.#deadlineIn(call.timeoutMs);
  }

  #deadlineIn(ms: number): number {
    const { server } = this.connection;
    server.watchDeadlines();
    return server.timers.monotonicMs() + ms;
  }

  get connection(): CallConnection {
    return this.host.userState as CallConnection;
  }

  get metadata(): Metadata {
    this.#metadata ??= new Metadata(this.#head.fields);
    return this.#metadata;
  }

  /** The time until the client's deadline, at least 0; undefined if it set none. */
  get deadlineMs(): number | undefined {
    if (this.#deadlineAtMs === NO_DEADLINE) return undefined;
    return Math.max(0, this.#deadlineAtMs - this.connection.server.timers.monotonicMs());
  }

  get hasDeadline(): boolean {
    return this.#deadlineAtMs !== NO_DEADLINE;
  }

  /** Ends the call if its deadline is over. */
  checkDeadline(nowMs: number): void {
    if (nowMs < this.#deadlineAtMs || this.isOver) return;
    this.giveUp(STATUS.deadlineExceeded, 'Deadline exceeded');
  }

  /** Sends metadata before the first response. */
  sendMetadata(metadata: MetadataFields): void {
    if (!this.isOver && !this.isHeadSent) this.sendHead(headBlock(metadata));
  }

  /** Ends the call with a status other than OK. */
  fail(status: number, message: string, trailers?: MetadataFields): void {
    if (this.isOver) return;
    this.finish(statusBlock({ status, message, trailers }, this.isHeadSent));
  }

  /** As above, and tells the method. */
  giveUp(status: number, message: string, trailers?: MetadataFields): void {
    if (this.isOver) return;
    this.fail(status, message, trailers);
    this.#cancel();
  }

  /** SC2, SC3. */
  #cancel(): void {
    const { onCancelled } = this;
    this.onCancelled = undefined;
    try {
      onCancelled?.();
    } catch (error) {
      this.connection.server.threw(error, this.method.path);
    }
  }

  refuse({ status, message, limit }: Refusal): void {
    if (limit !== undefined) this.connection.server.refused(limit);
    this.giveUp(status, message);
  }

  override onReset(): void {
    this.#cancel();
  }

  override onLate(): void {
    this.giveUp(STATUS.deadlineExceeded, 'the request did not arrive in time');
  }

  isLengthAllowed(bytes: number): boolean {
    const { messageBytesMax } = this.connection.server.limits;
    if (bytes <= messageBytesMax) return true;
    const message = `Received message larger than max (${bytes} vs. ${messageBytesMax})`;
    this.refuse({ status: STATUS.resourceExhausted, message, limit: 'messageBytesMax' });
    return false;
  }

  /** Returns the request in a message; undefined if it was refused. */
  protected decode(isCompressed: boolean, message: Buffer): { readonly request: unknown } | undefined {
    const plain = isCompressed ? this.#inflated(message) : message;
    if (plain === undefined) return undefined;
    try {
      return { request: this.method.deserialize(plain) };
    } catch (error) {
      this.giveUp(STATUS.internal, `Error deserializing request: ${textOf(error)}`);
      return undefined;
    }
  }

  #inflated(message: Buffer): Buffer | undefined {
    if (this.#encoding === 'identity') {
      this.giveUp(STATUS.internal, 'a compressed message in a call without grpc-encoding');
      return undefined;
    }
    if (this.#encoding !== 'gzip') {
      const text = `the server does not know the grpc-encoding "${this.#encoding.slice(0, 64)}"`;
      this.giveUp(STATUS.unimplemented, text, { 'grpc-accept-encoding': 'identity,gzip' });
      return undefined;
    }
    const plain = this.connection.server.inflater.inflate(message);
    if (Buffer.isBuffer(plain)) return plain;
    this.refuse(plain);
    return undefined;
  }

  /** Returns the bytes of a response; undefined if it has none (SC3). */
  protected encode(response: unknown): Uint8Array | undefined {
    try {
      return this.method.serialize(response);
    } catch (error) {
      this.connection.server.threw(error, this.method.path);
      this.giveUp(STATUS.internal, `Error serializing response: ${textOf(error)}`);
      return undefined;
    }
  }

  /** SC3 */
  protected guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.threw(error);
    }
  }

  protected threw(error: unknown): void {
    this.connection.server.threw(error, this.method.path);
    this.giveUp(STATUS.internal, 'the method failed');
  }

  /** Sends a message, now or when the windows allow it. */
  protected sendMessage(message: Uint8Array): void {
    if (!this.isHeadSent) this.sendHead(HEAD_BLOCK);
    const bytes = PREFIX_BYTES + message.length;
    if (!this.canSend(bytes)) {
      const framed = Buffer.allocUnsafe(bytes);
      framed[0] = 0;
      framed.writeUInt32BE(message.length, 1);
      framed.set(message, PREFIX_BYTES);
      return this.send(framed);
    }
    const { output } = this.host;
    output.reserve(FRAME_HEAD_BYTES + bytes);
    output.head(bytes, FRAME.data, FLAG.none, this.id);
    output.octet(0);
    output.uint32(message.length);
    output.bytes(message);
    this.takeWindow(bytes);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
