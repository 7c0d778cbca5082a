/** A client of HTTP/2 that sends the octets that a test gives it, and keeps the frames that it receives. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { encodeFields, HeaderDecoder, type HeaderField } from '../../src/index.ts';
import { ERROR, FLAG, FRAME, type Frame, FrameParser, frame, PREFACE, ping, SETTINGS_ACK, settings } from './frames.ts';

export interface RawClientOptions {
  /** What is sent first; by default the preface with empty settings, and the acknowledgement of the server's. */
  readonly greeting?: Buffer;
  /** Keeps no frames, for tests that receive much. */
  readonly forgets?: true;
}

export const GREETING = Buffer.concat([PREFACE, settings(), SETTINGS_ACK]);

export class RawClient {
  readonly frames: Frame[] = [];
  readonly socket: Socket;
  isClosed = false;
  readonly #parser = new FrameParser();
  /** Header lists in the order in which they came, because all share one table of fields. */
  readonly #lists = new Map<Frame, Readonly<Record<string, string>>>();
  readonly #decoder = new HeaderDecoder({ tableBytesMax: 4_096, listBytesMax: 1 << 20, fieldsMax: 1_000 });
  readonly #waiters = new Set<() => void>();
  readonly #forgets: boolean;

  private constructor(socket: Socket, options: RawClientOptions) {
    this.socket = socket;
    this.#forgets = options.forgets ?? false;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      for (const each of this.#parser.push(chunk)) this.#receive(each);
      this.#wake();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  #receive(received: Frame): void {
    if (this.#forgets) return;
    this.frames.push(received);
    const { type, payload } = received;
    if (type !== FRAME.headers) return;
    const list = this.#decoder.decode(payload, 0, payload.length) ?? [];
    this.#lists.set(received, Object.fromEntries(list.map(({ name, value }) => [name, value])));
  }

  static async connect(port: number, options: RawClientOptions = {}): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const client = new RawClient(socket, options);
    client.send(options.greeting ?? GREETING);
    return client;
  }

  send(...parts: readonly Buffer[]): void {
    this.socket.write(parts.length === 1 ? (parts[0] ?? '') : Buffer.concat(parts));
  }

  close(): void {
    this.socket.destroy();
  }

  /** Resolves with the first frame, received before or from now on, that this accepts. */
  async until(accepts: (frame: Frame) => boolean): Promise<Frame> {
    for (let seen = 0; ; ) {
      for (; seen < this.frames.length; seen++) {
        const each = this.frames[seen];
        if (each !== undefined && accepts(each)) return each;
      }
      if (this.isClosed) throw new Error(`the connection closed after ${this.frames.map(frameText).join(', ')}`);
      await this.#change();
    }
  }

  /** Resolves when the server has taken all that was sent; false if it has ended the connection. */
  async settled(mark: string): Promise<boolean> {
    const payload = Buffer.alloc(8, mark, 'latin1');
    this.send(ping(payload));
    const isAnswer = ({ type, flags, payload: got }: Frame): boolean =>
      type === FRAME.ping && flags === FLAG.ack && got.equals(payload);
    while (!this.frames.some(isAnswer)) {
      if (this.isClosed || this.frames.some(({ type }) => type === FRAME.goaway)) return false;
      await this.#change();
    }
    return true;
  }

  async closed(): Promise<void> {
    while (!this.isClosed) await this.#change();
  }

  async #change(): Promise<void> {
    await new Promise<void>((resolve) => this.#waiters.add(resolve));
  }

  /** Resolves when the server has ended the stream, with all that it sent on it. */
  async answer(stream: number): Promise<RawAnswer> {
    await this.until((each) => each.stream === stream && endsStream(each));
    return this.#answerSoFar(stream);
  }

  #answerSoFar(stream: number): RawAnswer {
    const lists: Readonly<Record<string, string>>[] = [];
    const data: Buffer[] = [];
    let reset: number | undefined;
    for (const each of this.frames) {
      if (each.stream !== stream) continue;
      if (each.type === FRAME.headers) lists.push(this.#lists.get(each) ?? {});
      else if (each.type === FRAME.data) data.push(each.payload);
      else if (each.type === FRAME.rstStream) reset = each.payload.readUInt32BE(0);
    }
    return { lists, data: Buffer.concat(data), reset };
  }

  #wake(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }
}

export interface RawAnswer {
  /** Header lists: head and trailers, or the one of a trailers-only answer. */
  readonly lists: readonly Readonly<Record<string, string>>[];
  readonly data: Buffer;
  /** The code of RST_STREAM, if one has arrived. */
  readonly reset: number | undefined;
}

function endsStream({ type, flags }: Frame): boolean {
  return (
    type === FRAME.rstStream || ((type === FRAME.headers || type === FRAME.data) && (flags & FLAG.endStream) !== 0)
  );
}

/** A frame for people. */
function frameText({ type, flags, stream, payload }: Frame): string {
  const [name = String(type)] = Object.entries(FRAME).find(([, value]) => value === type) ?? [];
  const code =
    type === FRAME.rstStream ? payload.readUInt32BE(0) : type === FRAME.goaway ? payload.readUInt32BE(4) : -1;
  return `${name}(${stream}, flags ${flags}${code < 0 ? `, ${payload.length} octets` : `, ${errorName(code)}`})`;
}

export function errorName(code: number): string {
  return Object.entries(ERROR).find(([, value]) => value === code)?.[0] ?? String(code);
}

export function fieldsOf(path: string, more: readonly (readonly [string, string])[] = []): readonly HeaderField[] {
  const base: readonly (readonly [string, string])[] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'localhost'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ];
  const replaced = new Set(more.map(([name]) => name));
  return [...base.filter(([name]) => !replaced.has(name)), ...more].map(([name, value]) => ({ name, value }));
}

/** HEADERS of a call; the stream stays open unless the flags say otherwise. */
export function openCall(stream: number, path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return frame(FRAME.headers, FLAG.endHeaders, stream, encodeFields(fieldsOf(path, more)));
}

/** A message of gRPC. */
export function message(body: Uint8Array | string, isCompressed = 0): Buffer {
  const bytes = Buffer.from(body);
  const prefix = Buffer.alloc(5);
  prefix[0] = isCompressed;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

export function data(stream: number, bytes: Uint8Array, flags = 0): Buffer {
  return frame(FRAME.data, flags, stream, bytes);
}

/** A whole unary call. */
export function unaryCall(
  stream: number,
  path: string,
  body: Uint8Array | string,
  more: readonly (readonly [string, string])[] = [],
): Buffer {
  return Buffer.concat([openCall(stream, path, more), data(stream, message(body), FLAG.endStream)]);
}
