/**
 * Where streams of frames begin: a port that takes them, and the dialling of one.
 *
 * A connection begins with `OPENING`, so that whoever speaks another protocol is recognised by its first bytes.
 */
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import type { Timer } from '../../clock.ts';
import {
  FRAME_STREAM_DEFAULTS,
  FrameStream,
  type FrameStreamOptions,
  type GreetedHandlers,
  type Hello,
} from './frame-stream.ts';

/** What every connection begins with. The last byte but one is the version of what frame-parser.ts and frame-stream.ts describe. */
export const OPENING = Buffer.from('REMORA\x01\n', 'latin1');

/** The word of a hello that says what the stream is for. */
export const SERVICE = 'service';

/** Takes the streams of one purpose. */
export interface FrameService {
  readonly name: string;
  /** Lets the caller in by `stream.sayHello` and `stream.handle`, or sends it away by `stream.end`. */
  open(hello: Hello, stream: FrameStream): void;
}

export interface FramePort {
  readonly port: number;
  /** Closes the port and all that came in through it. */
  close(): void;
}

export interface FramePortOptions extends FrameStreamOptions {
  readonly host: string;
  /** 0: any. */
  readonly port: number;
  readonly services: readonly FrameService[];
}

/** Resolves when the port is open; rejects when it cannot be had. */
export function openFramePort(options: FramePortOptions): Promise<FramePort> {
  const services = new Map(options.services.map((service) => [service.name, service]));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined); // a broken connection is no news: it is closed
    const { clock, probeMs, probeTimeoutMs } = { ...FRAME_STREAM_DEFAULTS, ...options };
    // Until its hello is there: who has none to say holds a descriptor for no longer.
    const patience = clock.setTimer(probeMs + probeTimeoutMs, () => socket.destroy());
    socket.on('close', () => patience.cancel());
    onOpening(socket, (ours) => {
      if (ours) serve(socket, options, services, patience);
      else sendAway(socket);
    });
  });
  return new Promise((resolve, reject) => {
    // Once the port is open: a connection that could not be taken, which its dialler finds out by itself.
    server.on('error', reject);
    server.listen({ host: options.host, port: options.port, exclusive: true }, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        port,
        close() {
          server.close();
          for (const socket of sockets) socket.destroy();
        },
      });
    });
  });
}

/** Begins a stream to `address` (`host:port`). Nothing but `hello` is sent before the other side has named itself. */
export function dialFrames(
  address: string,
  hello: Hello,
  options: FrameStreamOptions,
  handlers: GreetedHandlers,
): FrameStream {
  const socket = connectTo(address);
  socket.write(OPENING);
  const stream = new FrameStream(socket, options, handlers);
  stream.sayHello(hello);
  return stream;
}

function connectTo(address: string): Socket {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const port = Number(address.slice(colon + 1));
  if (colon > 0 && Number.isInteger(port) && port > 0 && port < 65_536) return connect({ host, port });
  return new Socket().destroy(new Error(`'${address}' is no address`)); // told like any connection that fails
}

/** Calls `decided` once the first bytes tell whether the connection is one of ours; the opening is taken off it then. */
function onOpening(socket: Socket, decided: (ours: boolean) => void): void {
  let begun: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    begun = Buffer.concat([begun, chunk]);
    const compared = Math.min(begun.length, OPENING.length);
    const same = begun.subarray(0, compared).equals(OPENING.subarray(0, compared));
    if (same && compared < OPENING.length) return;
    socket.off('data', onData);
    socket.pause();
    const rest = same ? begun.subarray(OPENING.length) : begun;
    if (rest.length > 0) socket.unshift(rest);
    decided(same);
  };
  socket.on('data', onData);
}

function serve(
  socket: Socket,
  options: FramePortOptions,
  services: ReadonlyMap<string, FrameService>,
  patience: Timer,
): void {
  const stream = new FrameStream(socket, options, {
    onHello(hello) {
      patience.cancel();
      const name = hello[SERVICE] ?? '';
      const service = services.get(name);
      if (service !== undefined) return service.open(hello, stream);
      stream.end({ code: 'UNIMPLEMENTED', message: `there is no service '${name}' at this port` });
    },
    onFrame() {},
    onDrain() {},
    onEnd() {},
  });
  socket.resume();
}

/** A person with a browser or a client that was given the wrong port reads this, or finds it in a trace. */
function sendAway(socket: Socket): void {
  const text = 'This port is for the nodes of a Remora cluster. Clients use the client port.\n';
  const head = ['HTTP/1.1 400 Bad Request', 'Content-Type: text/plain', `Content-Length: ${text.length}`];
  socket.end([...head, 'Connection: close', '', text].join('\r\n'));
  socket.resume();
}
