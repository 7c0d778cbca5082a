import { type Duplex, duplexPair } from 'node:stream';
import type { GrpcServer } from '../../src/grpc/grpc-server.ts';
import { HeaderDecoder } from '../../src/hpack/header-decoder.ts';
import { encodeFields } from '../../src/hpack/header-encoder.ts';
import { FLAG, FRAME, type Frame, FrameParser, frame, PREFACE, settings } from './frames.ts';

/** A client that writes frames itself, over a pair of streams in memory. */
export class FrameClient {
  readonly socket: Duplex;
  readonly frames: Frame[] = [];
  isClosed = false;
  readonly #parser = new FrameParser();
  readonly #decoder = new HeaderDecoder({ tableBytesMax: 4_096, listBytesMax: 1 << 20, fieldsMax: 1_000 });

  constructor(socket: Duplex) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.frames.push(...this.#parser.push(chunk)));
    socket.on('close', () => {
      this.isClosed = true;
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => undefined);
  }

  /** Connects to a server in memory. */
  static of(server: GrpcServer): FrameClient {
    const [mine, its] = duplexPair();
    // As of sockets: the end of one is the end of the other.
    its.on('close', () => mine.destroy());
    mine.on('close', () => its.destroy());
    server.accept(its);
    return new FrameClient(mine);
  }

  /** Sends the preface and settings, and acknowledges those of the server. */
  greet(...pairs: readonly (readonly [id: number, value: number])[]): this {
    this.send(PREFACE, settings(...pairs), frame(FRAME.settings, FLAG.ack, 0));
    return this;
  }

  send(...bytes: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  /** Waits until the server has answered what it can. */
  async settle(): Promise<this> {
    for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
    return this;
  }

  of(type: number, stream?: number): readonly Frame[] {
    return this.frames.filter((each) => each.type === type && (stream === undefined || each.stream === stream));
  }

  /** The header lists of a stream, each as `name: value` lines. All streams are decoded, in order. */
  headers(stream: number): readonly string[] {
    const lists = this.of(FRAME.headers).map(({ payload, stream: id }) => {
      const fields = this.#decoder.decode(payload, 0, payload.length) ?? [];
      return { id, list: fields.map(({ name, value }) => `${name}: ${value}`).join('\n') };
    });
    return lists.filter(({ id }) => id === stream).map(({ list }) => list);
  }

  data(stream: number): Buffer {
    return Buffer.concat(this.of(FRAME.data, stream).map(({ payload }) => payload));
  }

  /** The error codes with which a stream was reset. */
  resets(stream: number): readonly number[] {
    return this.of(FRAME.rstStream, stream).map(({ payload }) => payload.readUInt32BE(0));
  }

  /** Error code and text of the first GOAWAY. */
  goaway(): readonly [error: number, text: string] | undefined {
    const [first] = this.of(FRAME.goaway);
    return first && [first.payload.readUInt32BE(4), first.payload.toString('latin1', 8)];
  }
}

const REQUEST = { ':method': 'POST', ':scheme': 'http', ':path': '/test.Echo/Unary', ':authority': 'a' };

/** A header block of a call. */
function requestBlock(more: Readonly<Record<string, string>> = {}): Buffer {
  const fields = { ...REQUEST, 'content-type': 'application/grpc', te: 'trailers', ...more };
  return encodeFields(Object.entries(fields).map(([name, value]) => ({ name, value })));
}

export function headersFrame(stream: number, more: Readonly<Record<string, string>> = {}, flags = 0): Buffer {
  return frame(FRAME.headers, FLAG.endHeaders | flags, stream, requestBlock(more));
}

export function dataFrame(stream: number, payload: Uint8Array, flags = 0): Buffer {
  return frame(FRAME.data, flags, stream, payload);
}

/** A message with its prefix. */
export function message(bytes: Uint8Array | string, compressed = 0): Buffer {
  const body = Buffer.from(bytes as Uint8Array);
  const prefix = Buffer.alloc(5);
  prefix[0] = compressed;
  prefix.writeUInt32BE(body.length, 1);
  return Buffer.concat([prefix, body]);
}

/** A whole unary call. */
export function unaryCall(stream: number, text: string, more: Readonly<Record<string, string>> = {}): Buffer {
  return Buffer.concat([headersFrame(stream, more), dataFrame(stream, message(text), FLAG.endStream)]);
}

/** WINDOW_UPDATE or RST_STREAM. */
export function numberFrame(type: number, stream: number, value: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(value);
  return frame(type, 0, stream, payload);
}
