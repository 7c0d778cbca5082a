import { readFileSync } from 'node:fs';
import { type ChannelOptions, Server, ServerCredentials } from '@grpc/grpc-js';
import type { Logger } from '@remora/base';
import { PIPE_FRAME_BYTES_MAX } from '@remora/protocol';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import { CallGuard, type CallLimits } from './call-guard.ts';
import type { GrpcService } from './service.ts';

export interface ClientServerLimits extends CallLimits {
  /**
   * Largest message from a client, in bytes: `pipeFrameBytesMax` of the largest request, so that a frame of the Pipe
   * fits, and services can refuse what is too large with a better message.
   */
  readonly messageBytesMax: number;
  /** Calls and streams of one connection at a time; further ones wait at the client. */
  readonly callsPerConnectionMax: number;
  /** A connection without any sign of life for this long is asked for one … */
  readonly keepAliveMs: number;
  /** … and closed when none comes within this time. */
  readonly keepAliveTimeoutMs: number;
}

export const CLIENT_SERVER_LIMITS: ClientServerLimits = {
  unaryCallsMax: 16_384,
  streamsMax: 16_384,
  timeouts: TIMEOUT_LIMITS,
  messageBytesMax: PIPE_FRAME_BYTES_MAX,
  callsPerConnectionMax: 8_192,
  keepAliveMs: 30_000,
  keepAliveTimeoutMs: 20_000,
};

/** Certificates as PEM files. With `caFile`, clients must present a certificate that it signed. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile?: string;
}

export interface ClientServerDeps {
  readonly logger: Logger;
  readonly limits?: ClientServerLimits;
  readonly tls?: TlsFiles;
  /** Told of each call that is refused because too many are under way. */
  readonly onBusy?: () => void;
}

/** The address is taken by another process, may not be bound, or does not exist on this machine. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * The gRPC server on the port for clients. Add services first, then `start`. Each may use `guard`, so that limits
 * count for all of them together.
 */
export class ClientServer {
  readonly guard: CallGuard;
  readonly #server: Server;
  readonly #credentials: ServerCredentials;
  readonly #logger: Logger;

  constructor(deps: ClientServerDeps) {
    const limits = deps.limits ?? CLIENT_SERVER_LIMITS;
    this.#logger = deps.logger;
    this.guard = new CallGuard(limits, deps.logger, deps.onBusy);
    this.#server = new Server(channelOptions(limits));
    this.#credentials = credentials(deps.tls);
  }

  add(...services: readonly GrpcService[]): void {
    for (const { definition, implementation } of services) this.#server.addService(definition, implementation);
  }

  /** Listens; resolves to the port, which the system chooses for 0. Rejects with a `ListenError`. */
  start(host: string, port: number): Promise<number> {
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, this.#credentials, (error, boundPort) => {
        if (error === null) {
          this.#logger.info({ address: `${host}:${boundPort}` }, 'listening for clients');
          resolve(boundPort);
        } else reject(listenError(address, error));
      });
    });
  }

  /**
   * Takes no new calls, ends streams that use the guard, lets unary calls finish within `graceMs`, then answers them
   * as unknown. Streams that do not use the guard are for their owners to end before. Connections that clients still
   * keep open then are left to the end of the process.
   */
  stop(graceMs: number): Promise<void> {
    this.guard.drain();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.guard.abandon();
        this.#server.forceShutdown();
        resolve();
      }, graceMs);
      this.#server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

function channelOptions(limits: ClientServerLimits): ChannelOptions {
  return {
    'grpc.max_receive_message_length': limits.messageBytesMax,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': limits.callsPerConnectionMax,
    'grpc.keepalive_time_ms': limits.keepAliveMs,
    'grpc.keepalive_timeout_ms': limits.keepAliveTimeoutMs,
    'grpc.keepalive_permit_without_calls': 1,
    // Two servers on one port would each get some of the connections; a taken port is an error.
    'grpc.so_reuseport': 0,
    'grpc.enable_channelz': 0,
  };
}

function credentials(tls: TlsFiles | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const ca = tls.caFile === undefined ? null : readFileSync(tls.caFile);
  const pair = { cert_chain: readFileSync(tls.certFile), private_key: readFileSync(tls.keyFile) };
  return ServerCredentials.createSsl(ca, [pair], ca !== null);
}

function listenError(address: string, cause: Error): ListenError {
  const text = cause.message;
  const why = text.includes('EADDRINUSE')
    ? 'the port is taken by another process'
    : text.includes('EACCES')
      ? 'this user may not listen there'
      : text.includes('EADDRNOTAVAIL') || text.includes('ENOTFOUND')
        ? 'this machine has no such address'
        : text;
  return new ListenError(`cannot listen on ${address} for clients: ${why}`, { cause });
}
