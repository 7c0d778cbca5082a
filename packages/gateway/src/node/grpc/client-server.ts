import type { Socket } from 'node:net';
import type { Identification } from '@remora/auth';
import {
  type Clock,
  type FramePort,
  type FrameService,
  formatAddress,
  type InputLimits,
  type Logger,
  loopSection,
  type OtherConnections,
  openFramePort,
  type PortAccounts,
  type PortHeld,
  type SecurePort,
  verifiedName,
} from '@remora/base';
import { type GrpcHeld, type GrpcLimits, GrpcServer, type HeldBytes } from '@remora/grpc-server';
import { PIPE_FRAME_BYTES_MAX } from '@remora/protocol';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import { CallGuard, type CallLimits, type ConnectionState } from './call-guard.ts';
import type { GrpcService } from './service.ts';

export interface ClientServerLimits extends CallLimits {
  /**
   * The largest message or frame from a client, in bytes: `pipeFrameBytesMax` of the largest request, so that a frame
   * of the Pipe fits, and services can refuse larger requests with a better message.
   */
  readonly messageBytesMax: number;
  /** Calls and streams of one gRPC connection at a time; further ones wait at the client. */
  readonly callsPerConnectionMax: number;
  /** A connection that is silent for this long is sent a ping … */
  readonly keepAliveMs: number;
  /** … and closed without an answer within this time. */
  readonly keepAliveTimeoutMs: number;
  /** How long a connection may take to send its first bytes, which show its protocol. */
  readonly helloMs: number;
  /** Bounds for connections with incomplete input. */
  readonly input?: Partial<InputLimits>;
}

export const CLIENT_SERVER_LIMITS: ClientServerLimits = {
  unaryCallsMax: 16_384,
  streamsMax: 16_384,
  timeouts: TIMEOUT_LIMITS,
  messageBytesMax: PIPE_FRAME_BYTES_MAX,
  callsPerConnectionMax: 1_024,
  keepAliveMs: 30_000,
  keepAliveTimeoutMs: 20_000,
  helloMs: 5_000,
};

const NOTHING_HELD: HeldBytes = { incompleteBytes: 0, waitingBytes: 0 };

/** gRPC is spoken over HTTP/2 (RFC 9113, section 3.4). */
const HTTP2_BEGINS = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** The methods of HTTP/1.1 with the space behind them (RFC 9112, section 3). */
const HTTP1_BEGINS = ['GET ', 'HEAD ', 'POST ', 'PUT ', 'DELETE ', 'OPTIONS '].map((text) => Buffer.from(text));

export interface ClientServerDeps {
  readonly logger: Logger;
  readonly clock: Clock;
  readonly identification: Identification;
  readonly limits?: ClientServerLimits;
  /** TLS at the port; plain text without it. */
  readonly secure?: SecurePort | undefined;
  /** Called for each call that is refused because too many are in flight. */
  readonly onBusy?: () => void;
  /** Called for each unary call that is refused as malformed. */
  readonly onMalformed?: () => void;
}

/** The address is in use, may not be bound, or does not exist on this machine. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * The port for clients. It takes three kinds of connections and distinguishes them by their first bytes: streams of
 * frames, such as the Pipe, gRPC, and HTTP/1.1 if there is a server for it. Add services first, then `start`. gRPC
 * services may use `guard`, so that limits hold for all of them together.
 */
export class ClientServer {
  readonly guard: CallGuard;
  readonly #deps: ClientServerDeps;
  readonly #limits: ClientServerLimits;
  readonly #grpc: GrpcServer;
  /** How often each limit of the gRPC server was reached. */
  readonly #refused: Partial<Record<keyof GrpcLimits, number>> = {};
  readonly #frames: FrameService[] = [];
  #http: OtherConnections[] = [];
  #port: FramePort | undefined;

  constructor(deps: ClientServerDeps) {
    this.#deps = deps;
    this.#limits = deps.limits ?? CLIENT_SERVER_LIMITS;
    this.guard = new CallGuard(this.#limits, deps.logger, deps.identification, deps);
    this.#grpc = new GrpcServer({
      timers: deps.clock,
      aroundRead: (work) => loopSection('grpc', work),
      limits: grpcLimits(this.#limits),
      onRefused: (limit) => {
        this.#refused[limit] = (this.#refused[limit] ?? 0) + 1;
      },
      onMethodError: (cause, path) => deps.logger.error({ path, cause }, 'a gRPC method threw'),
    });
  }

  add(...services: readonly GrpcService[]): void {
    for (const { definition, implementation } of services) this.#grpc.addService(definition, implementation);
  }

  addFrames(service: FrameService): void {
    this.#frames.push(service);
  }

  /** Serves connections of HTTP/1.1 as well. Without it, they get an answer that names the port for HTTP. */
  addHttp(take: (socket: Socket) => void): void {
    this.#http = [{ begins: HTTP1_BEGINS, take }];
  }

  /** Listens. Resolves with the port, which the system chooses for 0. Rejects with a `ListenError`. */
  async start(host: string, port: number): Promise<number> {
    const { clock, logger, secure } = this.#deps;
    const { messageBytesMax, keepAliveMs, keepAliveTimeoutMs, helloMs, input = {} } = this.#limits;
    try {
      this.#port = await openFramePort({
        ...{ clock, logger, host, port, helloMs, input, secure, services: this.#frames },
        frameBytesMax: messageBytesMax,
        probeMs: keepAliveMs,
        probeTimeoutMs: keepAliveTimeoutMs,
        others: [
          {
            begins: [HTTP2_BEGINS],
            take: (socket, accounts) => this.#accept(socket, accounts),
            refusal: http2Refusal,
          },
          ...this.#http,
        ],
        purpose:
          'This port is for clients of Remora and etcd (gRPC). HTTP and JSON have an address of their own: --http-listen.',
      });
    } catch (cause) {
      throw listenError(formatAddress({ host, port }), cause);
    }
    logger.info({ address: formatAddress({ host, port: this.#port.port }) }, 'listening for clients');
    return this.#port.port;
  }

  /** What a gRPC connection holds counts towards the budgets of the port, like that of a stream of frames. */
  #accept(socket: Socket, { input, output }: PortAccounts): void {
    let changes = 0;
    let held: HeldBytes = NOTHING_HELD;
    const unread = output.open(socket.remoteAddress, {
      pendingBytes: () => held.waitingBytes,
      close: () => socket.destroy(),
    });
    socket.on('close', () => unread.end());
    const onHeld = (now: HeldBytes): void => {
      held = now;
      // Each change counts as a frame of its own: the messages of several streams come at the same time.
      input.unfinished(held.incompleteBytes, ++changes);
      unread.holds(held.waitingBytes);
    };
    const state: ConnectionState = {
      ...{ seen: { newest: 0 }, certificateName: verifiedName(socket), address: socket.remoteAddress },
    };
    this.#grpc.accept(socket.setNoDelay(true), { onHeld, state });
  }

  /** What its connections hold in memory; undefined before it listens. */
  get held(): PortHeld | undefined {
    return this.#port;
  }

  /** What the gRPC server holds, and how often each of its limits was reached since the start. */
  get grpc(): GrpcHeld & { readonly refused: Readonly<Partial<Record<keyof GrpcLimits, number>>> } {
    return { ...this.#grpc.held, refused: this.#refused };
  }

  /**
   * Accepts no new connections and calls, ends streams that use the guard, lets unary calls finish within `graceMs`,
   * then answers the rest with UNKNOWN_OUTCOME. Owners end streams of frames, and streams that do not use the guard,
   * before.
   */
  stop(graceMs: number): Promise<void> {
    this.guard.drain();
    this.#port?.refuse();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.guard.abandon();
        this.#grpc.close();
        resolve();
      }, graceMs);
      void this.#grpc.drain().then(() => {
        clearTimeout(timer);
        this.guard.abandon();
        resolve();
      });
    });
  }
}

/** The limits of the gRPC server that differ from its defaults. */
export function grpcLimits(limits: ClientServerLimits): Partial<GrpcLimits> {
  const { messageBytesMax, callsPerConnectionMax, keepAliveMs, keepAliveTimeoutMs, input } = limits;
  return {
    ...{ messageBytesMax, streamsPerConnectionMax: callsPerConnectionMax, keepAliveMs, keepAliveTimeoutMs },
    ...(input?.connectionsMax === undefined ? {} : { connectionsMax: input.connectionsMax }),
    ...(input?.bytesMax === undefined ? {} : { unfinishedBytesMax: input.bytesMax }),
  };
}

/**
 * Tells a gRPC client why it is refused: an empty SETTINGS frame, and GOAWAY with INADEQUATE_SECURITY and the reason
 * (RFC 9113, section 6.8). Clients show it.
 */
function http2Refusal(text: string): Uint8Array {
  const reason = Buffer.from(text);
  const goAway = Buffer.alloc(HTTP2_HEAD_BYTES + 8);
  goAway.writeUIntBE(8 + reason.length, 0, 3);
  goAway[3] = 0x07;
  goAway.writeUInt32BE(0x0c, HTTP2_HEAD_BYTES + 4);
  return Buffer.concat([Buffer.from([0, 0, 0, 0x04, 0, 0, 0, 0, 0]), goAway, reason]);
}

const HTTP2_HEAD_BYTES = 9;

function listenError(address: string, cause: unknown): ListenError {
  const text = String(cause);
  const why = text.includes('EADDRINUSE')
    ? 'the port is taken by another process'
    : text.includes('EACCES')
      ? 'this user may not listen there'
      : text.includes('EADDRNOTAVAIL') || text.includes('ENOTFOUND')
        ? 'this machine has no such address'
        : text;
  return new ListenError(`cannot listen on ${address} for clients: ${why}`, { cause });
}
