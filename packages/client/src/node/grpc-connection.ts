/**
 * Unary calls of gRPC over one connection of `node:http2`: the part of gRPC that administration needs, so that the SDK
 * depends on no gRPC library.
 *
 * GC1. An error that is an answer carries a code of the node, perhaps one of a newer version. Any other error came from
 *      the connection, and says nothing about what the node did.
 * GC2. A call ends at its time limit at the latest, and the node knows that limit.
 * GC3. While calls are open, the connection is probed. A node that hangs is detected after `PING_INTERVAL_MS` and
 *      `PING_TIMEOUT_MS`, and its calls end.
 * GC4. A connection without calls does not keep the process alive.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { type ErrorCode, isErrorCode, parseAddress } from '@remora/base';

/** A method of a generated service. */
export interface UnaryMethod<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

export interface CallOptions {
  readonly timeoutMs: number;
  /** Sent as etcd's clients send theirs. */
  readonly token: string | undefined;
}

/** The statuses of gRPC that this client tells apart. */
export const GRPC_STATUS = {
  ...{ OK: 0, UNKNOWN: 2, DEADLINE_EXCEEDED: 4, RESOURCE_EXHAUSTED: 8, UNIMPLEMENTED: 12, INTERNAL: 13 },
  UNAVAILABLE: 14,
} as const;

/** GC3. A server closes a connection whose client pings more often than every 5 s during a call without answer. */
export const PING_INTERVAL_MS = 6_000;
const PING_TIMEOUT_MS = 2_000;
/** Longer limits are cut to this, as `grpc-timeout` has eight digits: 27 hours. */
const CALL_MS_MAX = 99_999_999;
/** A larger answer ends its call with RESOURCE_EXHAUSTED. gRPC libraries have the same default. */
const RESPONSE_BYTES_MAX = 4 << 20;
/** A flag, and the length of the message, come before it. */
const PREFIX_BYTES = 5;

/** What a call ended with, other than with a response. */
export class GrpcError extends Error {
  readonly status: number;
  /** GC1. */
  readonly isAnswer: boolean;
  /** The code of an answer, if this version knows it. */
  readonly code: ErrorCode | undefined;

  constructor(status: number, message: string, code?: unknown) {
    super(message);
    this.status = status;
    this.isAnswer = typeof code === 'string';
    this.code = typeof code === 'string' && isErrorCode(code) ? code : undefined;
  }
}

export class GrpcConnection {
  readonly #session: ClientHttp2Session;
  readonly #address: string;
  #calls = 0;
  #pings: NodeJS.Timeout | undefined;
  #failure = 'the node closed it';
  #isInsecure = false;
  #isClosing = false;

  /** Resolves with undefined when the other end does not begin to speak HTTP/2 in time. */
  static open(
    address: string,
    { tls, timeoutMs }: { readonly tls: ConnectionOptions | undefined; readonly timeoutMs: number },
  ): Promise<GrpcConnection | undefined> {
    const named = address.replace(/%[^\]]*/, ''); // A URL cannot name the zone of an IPv6 address.
    const authority = `${tls === undefined ? 'http' : 'https'}://${named}`;
    const settings = { enablePush: false };
    const session = connect(authority, { createConnection: () => socketTo(address, tls), settings });
    const connection = new GrpcConnection(session, address);
    return new Promise((resolve) => {
      const timer = setTimeout(() => session.destroy(), Math.min(timeoutMs, CALL_MS_MAX));
      session.once('close', () => {
        clearTimeout(timer);
        resolve(undefined);
      });
      session.once('remoteSettings', () => {
        clearTimeout(timer);
        session.unref(); // GC4
        resolve(connection);
      });
    });
  }

  private constructor(session: ClientHttp2Session, address: string) {
    this.#session = session;
    this.#address = address;
    session.on('error', ({ message }: Error) => {
      this.#failure = message;
    });
    session.on('goaway', (code) => {
      this.#isInsecure = code === constants.NGHTTP2_INADEQUATE_SECURITY;
    });
  }

  /** False once either end has closed the connection or begun to. */
  get isOpen(): boolean {
    return !this.#isClosing && !this.#session.closed && !this.#session.destroyed;
  }

  /** The node has refused the connection: it requires TLS, or a certificate. */
  get isInsecure(): boolean {
    return this.#isInsecure;
  }

  /** @throws GrpcError */
  async call<Request, Response>(
    method: UnaryMethod<Request, Response>,
    request: Request,
    options: CallOptions,
  ): Promise<Response> {
    const timeoutMs = Math.min(Math.ceil(options.timeoutMs), CALL_MS_MAX);
    // An invalid request throws here, before there is a stream that it would leave open.
    const message = method.requestSerialize(request);
    const stream = this.#request(method.path, { ...options, timeoutMs });
    this.#begin();
    try {
      return method.responseDeserialize(await this.#answer(stream, message, timeoutMs));
    } finally {
      this.#end();
    }
  }

  /** Calls in progress may finish. */
  close(): void {
    this.#isClosing = true;
    if (this.#calls === 0) this.#session.destroy();
  }

  #request(path: string, { timeoutMs, token }: CallOptions): ClientHttp2Stream {
    const headers = {
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      'grpc-timeout': `${timeoutMs}m`, // GC2
      ...(token === undefined ? {} : { token }),
    };
    try {
      return this.#session.request(headers);
    } catch {
      throw this.#broken();
    }
  }

  #answer(stream: ClientHttp2Stream, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const answer = new Answer();
    return new Promise((resolve, reject) => {
      const fail = (error: GrpcError): void => {
        reject(error);
        stream.close(constants.NGHTTP2_CANCEL);
      };
      // GC2
      const timer = setTimeout(
        () => fail(new GrpcError(GRPC_STATUS.DEADLINE_EXCEEDED, 'no answer in time')),
        timeoutMs,
      );
      stream.on('response', (headers) => answer.headers(headers));
      stream.on('trailers', (headers) => answer.trailers(headers));
      stream.on('data', (chunk: Buffer) => {
        if (!answer.data(chunk)) fail(new GrpcError(GRPC_STATUS.RESOURCE_EXHAUSTED, TOO_LARGE));
      });
      stream.on('error', ({ message }) => {
        this.#failure = message;
      });
      stream.on('close', () => {
        clearTimeout(timer);
        const result = answer.result() ?? this.#broken();
        if (result instanceof GrpcError) reject(result);
        else resolve(result);
      });
      stream.end(framed(message));
    });
  }

  #broken(): GrpcError {
    return new GrpcError(GRPC_STATUS.UNAVAILABLE, `the connection to ${this.#address} broke: ${this.#failure}`);
  }

  #begin(): void {
    if (this.#calls++ > 0) return;
    this.#session.ref();
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL_MS);
  }

  #end(): void {
    if (--this.#calls > 0) return;
    clearInterval(this.#pings);
    if (this.#isClosing) this.#session.destroy();
    else if (this.isOpen) this.#session.unref(); // GC4
  }

  /** GC3. */
  #ping(): void {
    if (this.#session.destroyed) return;
    let isAnswered = false;
    // After this process stood still, the timer is due before the answer has been read; hence `setImmediate`.
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (isAnswered) return;
        this.#failure = 'it hangs';
        this.#session.destroy();
      });
    }, PING_TIMEOUT_MS);
    this.#session.ping(() => {
      isAnswered = true;
      clearTimeout(timer);
    });
  }
}

const TOO_LARGE = `the answer is larger than ${RESPONSE_BYTES_MAX} bytes`;

/** One answer of a node, as it arrives. */
class Answer {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #httpStatus = 0;
  #end: IncomingHttpHeaders | undefined;

  headers(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    this.#httpStatus = headers[':status'] ?? 0;
    if (headers['grpc-status'] !== undefined) this.#end = headers; // An answer without a message may be one block.
  }

  trailers(headers: IncomingHttpHeaders): void {
    this.#end = headers;
  }

  /** Returns false when the answer has become too large. */
  data(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > RESPONSE_BYTES_MAX + PREFIX_BYTES) return false;
    this.#chunks.push(chunk);
    return true;
  }

  /** The message, or the node's error; undefined when the answer is not complete. */
  result(): Buffer | GrpcError | undefined {
    if (this.#end === undefined) {
      if (this.#httpStatus === 0 || this.#httpStatus === constants.HTTP_STATUS_OK) return undefined;
      return new GrpcError(GRPC_STATUS.UNKNOWN, `not a node of Remora: it answered with HTTP ${this.#httpStatus}`);
    }
    const status = Number(this.#end['grpc-status']);
    if (status === GRPC_STATUS.OK) return unframed(Buffer.concat(this.#chunks));
    const { 'remora-code': code, 'grpc-message': message } = this.#end;
    return new GrpcError(status, decoded(message), code);
  }
}

function framed(message: Buffer): Buffer {
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, PREFIX_BYTES);
  return frame;
}

/** Exactly one message, not compressed, as this client accepts no other. */
function unframed(bytes: Buffer): Buffer | GrpcError {
  const isWhole =
    bytes.length >= PREFIX_BYTES && bytes[0] === 0 && bytes.readUInt32BE(1) === bytes.length - PREFIX_BYTES;
  if (isWhole) return bytes.subarray(PREFIX_BYTES);
  return new GrpcError(GRPC_STATUS.INTERNAL, 'the answer is not one message of gRPC');
}

/** `grpc-message` is percent-encoded UTF-8. */
function decoded(message: string | string[] | undefined): string {
  const text = String(message ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function socketTo(address: string, tls: ConnectionOptions | undefined): Socket {
  const { host, port } = parseAddress(address) ?? { host: address, port: 0 };
  if (tls === undefined) return connectPlain({ host, port });
  // A proxy before the gateways may choose the certificate by the requested name; an IP address is not a name.
  const name = isIP(host) === 0 ? { servername: host } : {};
  return connectTls({ ...name, ...tls, ALPNProtocols: ['h2'], host, port });
}
