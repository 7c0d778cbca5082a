/**
 * Opens and accepts streams of frames: the listening port, and dialling.
 *
 * A connection starts with `OPENING`, so that a peer with another protocol is recognized by its first bytes.
 */
import { type AddressInfo, connect, createServer, isIP, Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Timer } from '../../clock.ts';
import type { ErrorCode } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { Connector } from './connector.ts';
import {
  FRAME_STREAM_DEFAULTS,
  FrameStream,
  type FrameStreamOptions,
  type GreetedHandlers,
  type Hello,
  type PortAccounts,
} from './frame-stream.ts';
import { type HostNames, systemHosts } from './host-names.ts';
import { INPUT_LIMITS, InputBudget, type InputLimits, type InputStats } from './input-budget.ts';
import { OUTPUT_LIMITS, OutputBudget, type OutputLimits, type OutputStats } from './output-budget.ts';
import { type SecurePort, TLS_BEGINS } from './secure-port.ts';

/**
 * The first bytes of every connection. The last byte but one is the version of the protocol of frame-parser.ts and
 * frame-stream.ts.
 */
export const OPENING = Buffer.from('REMORA\x01\n', 'latin1');

/** The name of ALPN for streams of frames between clients and gateways. */
export const CLIENT_ALPN = 'remora';

/** The word of a hello that names the purpose of the stream. */
export const SERVICE = 'service';

/** Accepts the streams of one purpose. */
export interface FrameService {
  readonly name: string;
  /** Accepts the caller with `stream.sayHello` and `stream.handle`, or rejects it with `stream.end`. */
  open(hello: Hello, stream: FrameStream): void;
}

/** What the connections of a port hold, as its budgets count it. */
export interface PortHeld {
  readonly input: InputStats;
  readonly output: OutputStats;
}

export interface FramePort extends PortHeld {
  readonly port: number;
  /** Accepts no more connections, and closes those that have not said hello; the others continue. */
  refuse(): void;
  /** Closes the port and all its connections. */
  close(): void;
}

export interface FramePortOptions extends FrameStreamOptions {
  readonly host: string;
  /** 0: any. */
  readonly port: number;
  /** The time limit for a connection's hello; by default `probeMs` and `probeTimeoutMs` together. */
  readonly helloMs?: number;
  readonly services: readonly FrameService[];
  /** Limits on what connections may hold before they have sent a complete frame; by default `INPUT_LIMITS`. */
  readonly input?: Partial<InputLimits>;
  /** Limits on what may wait for connections that do not read; by default `OUTPUT_LIMITS`. */
  readonly output?: Partial<OutputLimits>;
  /** Logs connections that are closed by a budget. */
  readonly logger?: Pick<Logger, 'warn'>;
  /** Connections of another protocol; all that are neither are rejected. */
  readonly others?: readonly OtherConnections[];
  /** TLS, by the first bytes of a connection; without it, all connections are in plain text. */
  readonly secure?: SecurePort | undefined;
  /** The purpose of the port, named in the message to rejected connections. */
  readonly purpose?: string;
}

export interface OtherConnections {
  /** Each of them begins with one of these. No two kinds of connections share a beginning. */
  readonly begins: readonly Uint8Array[];
  /** Takes one from its first byte on, which is there by then. */
  take(socket: Socket, accounts: PortAccounts): void;
  /** The bytes that tell the other end why it is refused; by default an answer in HTTP/1.1. */
  refusal?(text: string): Uint8Array;
}

export interface DialOptions extends FrameStreamOptions {
  /** The stream uses TLS; plain text without it. */
  readonly tls?: ConnectionOptions | undefined;
  /** Opens the socket, instead of `tls`. */
  readonly connector?: Connector | undefined;
  /** Resolves names, unless there is a connector; by default, as the system does. */
  readonly hosts?: HostNames | undefined;
}

/** Resolves when the port is open; rejects if it cannot be opened. */
export function openFramePort(options: FramePortOptions): Promise<FramePort> {
  const services = new Map(options.services.map((service) => [service.name, service]));
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();
  const budget = new InputBudget({ ...INPUT_LIMITS, ...options.input }, options.clock, options.logger);
  const output = new OutputBudget({ ...OUTPUT_LIMITS, ...options.output }, options.clock, options.logger);
  const server = createServer((socket) => {
    const account = budget.admit(socket.remoteAddress, () => socket.destroy());
    if (account === undefined) return void socket.destroy();
    sockets.add(socket);
    undecided.add(socket);
    socket.on('close', () => {
      account.end();
      sockets.delete(socket);
      undecided.delete(socket);
    });
    socket.on('error', () => undefined); // a broken connection is closed, which is enough
    const patience = new Patience(socket, options);
    const decided = (): void => {
      undecided.delete(socket);
      patience.end();
    };
    receive(socket, { options, services, accounts: { input: account, output }, decided });
  });
  const refuse = (): void => {
    server.close();
    for (const socket of undecided) socket.destroy();
  };
  return new Promise((resolve, reject) => {
    // After the port is open: a connection could not be accepted, and its dialler notices that.
    server.on('error', reject);
    server.listen({ host: options.host, port: options.port, exclusive: true }, () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        port,
        get input() {
          return budget.stats;
        },
        get output() {
          return output.stats;
        },
        refuse,
        close() {
          refuse();
          for (const socket of sockets) socket.destroy();
        },
      });
    });
  });
}

/** Begins a stream to `address` (`host:port`). Sends nothing but `hello` before the other side's hello. */
export function dialFrames(
  address: string,
  hello: Hello,
  options: DialOptions,
  handlers: GreetedHandlers,
): FrameStream {
  const socket = connectTo(address, options);
  socket.write(OPENING);
  const stream = new FrameStream(socket, options, handlers);
  stream.sayHello(hello);
  return stream;
}

function connectTo(address: string, { tls, connector, hosts = systemHosts }: DialOptions): Socket {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const port = Number(address.slice(colon + 1));
  if (colon > 0 && Number.isInteger(port) && port > 0 && port < 65_536) {
    if (connector !== undefined) return connector.connect({ host, port });
    if (tls === undefined) return connect({ ...hosts.dialOptions, host, port });
    // A proxy before the gateways may choose the certificate by the requested name; an IP address is not a name.
    const name = isIP(host) === 0 ? { servername: host } : {};
    return connectTls({ ...hosts.dialOptions, ...name, ALPNProtocols: [CLIENT_ALPN], ...tls, host, port });
  }
  return new Socket().destroy(new Error(`'${address}' is not an address`)); // reported like any failed connection
}

/** Limits how long a connection may send nothing, or nothing useful: it occupies a file descriptor meanwhile. */
class Patience {
  readonly #timer: Timer;

  constructor(socket: Socket, options: FramePortOptions) {
    const { clock, probeMs, probeTimeoutMs } = { ...FRAME_STREAM_DEFAULTS, ...options };
    this.#timer = clock.setTimer(options.helloMs ?? probeMs + probeTimeoutMs, () => socket.destroy());
    socket.on('close', () => this.end());
  }

  end(): void {
    this.#timer.cancel();
  }
}

/** A connection that has been accepted, until its first bytes tell its kind. */
interface Received {
  readonly options: FramePortOptions;
  readonly services: ReadonlyMap<string, FrameService>;
  readonly accounts: PortAccounts;
  /** The connection is one that this port serves. Until then its time is bounded. */
  readonly decided: () => void;
}

type Kind = 'frames' | OtherConnections | undefined;

/** The beginning of a handshake; the connection is received again behind it. */
const TLS: OtherConnections = { begins: [TLS_BEGINS], take: () => undefined };

/** Serves a connection in plain text, or lets TLS begin. */
function receive(socket: Socket, received: Received): void {
  const { secure, others = [] } = received.options;
  onOpening(socket, secure === undefined ? others : [...others, TLS], (kind) => {
    if (secure === undefined) return serveKind(socket, kind, received);
    if (kind === TLS) {
      return secure.accept(socket, (secured) => {
        onOpening(secured.socket, others, (inner) => {
          if (secured.refusal === undefined) return serveKind(secured.socket, inner, received);
          sendAway(secured.socket, inner, { code: 'UNAUTHENTICATED', message: secured.refusal }, received);
        });
      });
    }
    if (secure.isRequired) return sendAway(socket, kind, TLS_REQUIRED, received);
    serveKind(socket, kind, received);
  });
}

/** Another node of the cluster may still accept plain text, so a client tries that. */
const TLS_REQUIRED = {
  code: 'UNAVAILABLE',
  message: 'this port requires TLS; use https://, or the options for TLS',
} as const;

function serveKind(socket: Socket, kind: Kind, received: Received): void {
  const { accounts, decided, options } = received;
  if (kind === 'frames') return serve(socket, received);
  if (kind === undefined)
    return sendAway(socket, kind, { code: 'INVALID_ARGUMENT', message: purposeOf(options) }, received);
  decided();
  kind.take(socket, accounts);
}

/**
 * Calls `decided` once the first bytes tell what kind of connection it is; undefined: none that this port has. The
 * opening of a stream of frames is removed from them.
 */
function onOpening(socket: Socket, others: readonly OtherConnections[], decided: (kind: Kind) => void): void {
  let begun: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    begun = Buffer.concat([begun, chunk]);
    const isFrames = agree(begun, OPENING);
    if (isFrames && begun.length < OPENING.length) return;
    const kinds = isFrames ? [] : others.filter(({ begins }) => begins.some((begin) => agree(begun, begin)));
    if (kinds.length > 1) return;
    socket.off('data', onData);
    socket.pause();
    const rest = isFrames ? begun.subarray(OPENING.length) : begun;
    if (rest.length > 0) socket.unshift(rest);
    decided(isFrames ? 'frames' : kinds[0]);
  };
  socket.on('data', onData);
}

/** Compares the two as far as both go. */
function agree(bytes: Buffer, other: Uint8Array): boolean {
  const compared = Math.min(bytes.length, other.length);
  return bytes.subarray(0, compared).equals(other.subarray(0, compared));
}

function serve(socket: Socket, { options, services, accounts, decided }: Received): void {
  const handlers: GreetedHandlers = {
    onHello(hello) {
      decided();
      const name = hello[SERVICE] ?? '';
      const service = services.get(name);
      if (service !== undefined) return service.open(hello, stream);
      stream.end({ code: 'UNIMPLEMENTED', message: `there is no service '${name}' at this port` });
    },
    onFrame() {},
    onDrain() {},
    onEnd() {},
  };
  const stream: FrameStream = new FrameStream(socket, options, handlers, accounts);
  socket.resume();
}

function purposeOf({ purpose }: FramePortOptions): string {
  return purpose ?? 'This port is for the nodes of a Remora cluster. Clients use the client port.';
}

/** The other end, or a person whose browser or client has the wrong port, reads why. */
function sendAway(
  socket: Socket,
  kind: Kind,
  reason: { readonly code: ErrorCode; readonly message: string },
  { options }: Pick<Received, 'options'>,
): void {
  if (kind === 'frames') {
    const ignore = { onHello() {}, onFrame() {}, onDrain() {}, onEnd() {} };
    new FrameStream(socket, options, ignore).end(reason);
    return;
  }
  const text = `${reason.message}\n`;
  const head = ['HTTP/1.1 400 Bad Request', 'Content-Type: text/plain', `Content-Length: ${Buffer.byteLength(text)}`];
  socket.end(kind?.refusal?.(reason.message) ?? [...head, 'Connection: close', '', text].join('\r\n'));
  socket.resume();
}
