/** Exchanges arbitrarily malformed bytes with a port: raw TCP, and HTTP/2 requests with any body. */
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { OPENING } from '@remora/base';
import { frameBytes } from '../../../packages/base/src/node/frames/frame-parser.ts';
import { FuzzViolation } from '../target.ts';

const HOST = '127.0.0.1';
/** A server that waits for more is abandoned then. The next connection shows whether it still works. */
const PATIENCE_MS = 100;

/** Sends the bytes. Returns what comes back until the server closes or is silent for this long. */
export function rawExchange(port: number, bytes: Uint8Array, patienceMs = PATIENCE_MS): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const answer: Buffer[] = [];
    const socket = connectTcp({ host: HOST, port });
    socket.setTimeout(patienceMs, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => answer.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(new FuzzViolation('nobody listens any more'));
    });
    socket.on('close', () => resolve(Buffer.concat(answer)));
    socket.end(bytes);
  });
}

export interface Http2Request {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A gRPC call with any bytes as its messages. Resolves to its headers and trailers once the server has ended it. */
export function grpcExchange(port: number, request: Http2Request): Promise<Readonly<Record<string, unknown>>> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`http://${HOST}:${port}`);
    const seen: Record<string, unknown> = {};
    const done = (): void => {
      session.destroy();
      resolve(seen);
    };
    session.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(new FuzzViolation('nobody listens any more'));
      else done();
    });
    let stream: ReturnType<typeof session.request>;
    try {
      stream = session.request({
        ':method': 'POST',
        ':path': request.path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...request.headers,
      });
    } catch {
      return done(); // Headers that cannot be sent at all.
    }
    stream.setTimeout(PATIENCE_MS, done);
    stream.on('response', (headers) => Object.assign(seen, headers));
    stream.on('trailers', (trailers) => Object.assign(seen, trailers));
    stream.on('error', () => {});
    stream.on('close', done);
    stream.on('data', () => {});
    stream.end(request.body);
  });
}

/**
 * Everything that a peer sends on a connection: the opening, and these bytes as frames. The first frame is its hello.
 */
export function framedBytes(frames: readonly (Uint8Array | string)[]): Buffer {
  return Buffer.concat([OPENING, ...frames.flatMap((frame) => frameBytes('data', Buffer.from(frame)))]);
}

/** A message with gRPC's framing. */
export function grpcMessage(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** A complete HTTP/2 connection in the bytes that a client sends: preface, settings, and one request with its body. */
export function http2Bytes(headers: readonly (readonly [string, string])[], body: Uint8Array): Buffer {
  const block = Buffer.concat(
    headers.flatMap(([name, value]) => [Buffer.from([0]), hpackText(name), hpackText(value)]),
  );
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    http2Frame(FRAME.settings, 0, 0, Buffer.alloc(0)),
    http2Frame(FRAME.headers, END_HEADERS, 1, block),
    http2Frame(FRAME.data, END_STREAM, 1, body),
  ]);
}

const FRAME = { data: 0, headers: 1, settings: 4 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;

function http2Frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header's name or value as HPACK encodes short ones, without Huffman coding. */
function hpackText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}
