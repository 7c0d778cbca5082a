/**
 * A gRPC server without a network or a clock: it takes the octets of one client after another, and what it does with
 * each is checked.
 *
 * V1. It throws nothing, and no method sees more than it should.
 * V2. What it sends is well formed: whole frames, header blocks that can be decoded, no frame of a stream behind the
 *     one that ended it, no more DATA than the window of the connection, and nothing behind a GOAWAY with an error.
 * V3. When the connection is gone, nothing is held of it. While it is there, not much more than it has sent.
 */
import { Duplex } from 'node:stream';
import {
  GrpcServer,
  HeaderDecoder,
  type PendingTimer,
  type StreamCall,
  type Timers,
  type UnaryCall,
} from '../../../packages/grpc-server/src/index.ts';
import { FLAG, FRAME, type Frame, FrameParser, PREFACE } from '../../../packages/grpc-server/test/support/frames.ts';
import { FuzzViolation } from '../target.ts';

/** Lets the server's own turns and ticks pass when it is asked to. */
class FuzzTimers implements Timers {
  nowMs = 0;
  readonly #immediates: (() => void)[] = [];
  readonly #timers = new Set<() => void>();

  monotonicMs(): number {
    return this.nowMs;
  }

  setTimer(_delayMs: number, fn: () => void): PendingTimer {
    this.#timers.add(fn);
    return { cancel: () => void this.#timers.delete(fn) };
  }

  setImmediate(fn: () => void): void {
    this.#immediates.push(fn);
  }

  /** Ends the turn. What is scheduled meanwhile comes in the next one. */
  turn(): void {
    for (let turns = 0; this.#immediates.length > 0; turns++) {
      if (turns > 1_000) throw new FuzzViolation('the server does not come to rest');
      for (const fn of this.#immediates.splice(0)) fn();
    }
  }

  /** All that waits for a time. */
  second(): void {
    this.nowMs += 1_000;
    const due = [...this.#timers];
    this.#timers.clear();
    for (const fn of due) fn();
    this.turn();
  }
}

/** The server's end of a connection. */
class MemorySocket extends Duplex {
  readonly sent: Buffer[] = [];
  /** Whether the client reads. */
  isReading = true;
  readonly #waiting: (() => void)[] = [];

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.sent.push(chunk);
    if (this.isReading) done();
    else this.#waiting.push(done);
  }

  /** The client has read what there is. */
  drain(): void {
    this.isReading = true;
    for (const done of this.#waiting.splice(0)) done();
    this.emit('drain');
  }
}

const OUTPUT_BASE_BYTES = 1 << 20;

export class FuzzedServer {
  readonly #timers = new FuzzTimers();
  readonly #server: GrpcServer;
  #problem: unknown;

  constructor() {
    this.#server = new GrpcServer({
      timers: this.#timers,
      limits: { messageBytesMax: 1 << 20, outputBytesPerConnectionMax: 4 << 20 },
      onMethodError: (error) => {
        this.#problem ??= error;
      },
    });
    this.#server.addService(SERVICE, {
      echo: (call) => {
        look(call);
        call.respond(call.request);
      },
      collect,
      produce,
      chat,
    });
  }

  /** One client, from its first octet to the end of its connection. */
  take(input: Buffer): void {
    this.#problem = undefined;
    const socket = new MemorySocket();
    socket.on('error', () => undefined);
    const length = input.length;
    socket.isReading = length % 3 !== 0;
    this.#server.accept(socket);
    const step = [length + 1, 1_000, 61, 13][length % 4] ?? 1;
    // Octet by octet is too slow for a long input.
    const size = Math.max(step, length >> 10);
    for (let at = 0; at < length; at += size) {
      socket.emit('data', input.subarray(at, at + size));
      if (at % 5 === 0) this.#timers.turn();
    }
    this.#timers.turn();
    const { unfinishedBytes } = this.#server.held;
    if (unfinishedBytes > 2 * length + 256 * (length / 9 + 1)) {
      throw new FuzzViolation(`${unfinishedBytes} bytes are held of ${length}`);
    }
    if (!socket.isReading) socket.drain();
    this.#timers.turn();
    this.#timers.second();
    socket.emit('close');
    this.#timers.second();
    socket.destroy();
    if (this.#problem !== undefined) throw new FuzzViolation(`a method failed: ${String(this.#problem)}`);
    const { connections, streams, unfinishedBytes: unfinished, outputBytes } = this.#server.held;
    if (connections + streams + unfinished + outputBytes !== 0) {
      throw new FuzzViolation(`left behind: ${JSON.stringify(this.#server.held)}`);
    }
    checkOutput(input, Buffer.concat(socket.sent));
  }
}

/** V2. */
function checkOutput(input: Buffer, output: Buffer): void {
  const frames = new FrameParser().push(output);
  const framed = frames.reduce((sum, { payload }) => sum + 9 + payload.length, 0);
  if (framed !== output.length) throw new FuzzViolation('the output ends inside a frame');
  const decoder = new HeaderDecoder({ tableBytesMax: 4_096, listBytesMax: 1 << 20, fieldsMax: 1_000 });
  const ended = new Set<number>();
  let windowBytes = 65_535 + grantedBytes(input);
  let otherBytes = 0;
  let isBroken = false;
  for (const { type, flags, stream, payload } of frames) {
    if (isBroken) throw new FuzzViolation(`a frame of type ${type} behind a GOAWAY`);
    if (type === FRAME.goaway) isBroken = payload.readUInt32BE(4) !== 0;
    if (type === FRAME.data) windowBytes -= payload.length;
    else otherBytes += payload.length;
    if (type === FRAME.headers && decoder.decode(payload, 0, payload.length) === undefined) {
      throw new FuzzViolation('a header list that is too large');
    }
    const isOfStream = type === FRAME.data || type === FRAME.headers;
    if (isOfStream && ended.has(stream)) throw new FuzzViolation(`a frame of type ${type} behind the end of ${stream}`);
    if (type === FRAME.rstStream || (isOfStream && (flags & FLAG.endStream) !== 0)) ended.add(stream);
  }
  if (windowBytes < 0) throw new FuzzViolation(`${-windowBytes} bytes beyond the window of the connection`);
  if (otherBytes > OUTPUT_BASE_BYTES + 64 * input.length) throw new FuzzViolation(`${otherBytes} bytes of answers`);
}

/** By how much the client has opened the window of the connection. */
function grantedBytes(input: Buffer): number {
  const frames: readonly Frame[] = new FrameParser().push(input.subarray(PREFACE.length));
  return frames
    .filter(({ type, stream, payload }) => type === FRAME.windowUpdate && stream === 0 && payload.length === 4)
    .reduce((sum, { payload }) => sum + (payload.readUInt32BE(0) & 0x7fffffff), 0);
}

function method<Requests extends boolean, Responses extends boolean>(
  name: string,
  requestStream: Requests,
  responseStream: Responses,
) {
  return {
    path: `/fuzz.Service/${name}`,
    requestStream,
    responseStream,
    requestDeserialize: (bytes: Buffer): Buffer => Buffer.from(bytes),
    responseSerialize: (message: Buffer): Buffer => message,
  };
}

const SERVICE = {
  echo: method('Echo', false, false),
  collect: method('Collect', true, false),
  produce: method('Produce', false, true),
  chat: method('Chat', true, true),
};

type AnyCall = UnaryCall<Buffer, Buffer> | StreamCall<Buffer, Buffer>;

/** Reads all that a call has. */
function look({ metadata, deadlineMs }: AnyCall): void {
  for (const { name } of metadata) {
    if (name.endsWith('-bin')) metadata.getBinary(name);
    else metadata.getAll(name);
  }
  if (deadlineMs !== undefined && !(deadlineMs >= 0)) throw new FuzzViolation(`a deadline in ${deadlineMs} ms`);
}

function collect(call: StreamCall<Buffer, Buffer>): void {
  look(call);
  let bytes = 0;
  call.onRequest = (message) => {
    bytes += message.length;
  };
  call.onHalfClose = () => call.respond(Buffer.from(String(bytes)));
}

function produce(call: StreamCall<Buffer, Buffer>): void {
  let left = 20;
  const goOn = (): void => {
    while (left > 0) {
      left--;
      if (!call.write(Buffer.alloc(10_000))) return;
    }
    call.end({ 'x-left': String(left) });
  };
  call.onDrain = goOn;
  call.onRequest = goOn;
  call.onCancelled = () => {
    left = 0;
  };
}

function chat(call: StreamCall<Buffer, Buffer>): void {
  look(call);
  call.onDrain = () => call.resume();
  call.onHalfClose = () => call.end();
  call.onRequest = (message) => {
    if (message.length === 2) call.fail(10, 'as asked');
    else if (!call.write(message)) call.pause();
  };
}
