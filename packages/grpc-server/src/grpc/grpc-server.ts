/**
 * A gRPC server for many small calls, over any duplex socket.
 *
 * G1. Requests that arrive in one read reach their methods in one turn; what is answered in one turn leaves in one
 *     write (output.ts).
 * G2. Deadlines are looked at every `DEADLINE_STEP_MS` while a call has one, all by one timer.
 */
import type { Duplex } from 'node:stream';
import type { Connection, HeldBytes, StreamUser } from '../http2/connection.ts';
import { TICK_MS } from '../http2/keeper.ts';
import type { RequestHead } from '../http2/request-head.ts';
import { serveConnection } from '../http2/serve-connection.ts';
import type { Stream } from '../http2/stream.ts';
import { Totals } from '../http2/totals.ts';
import type { PendingTimer, Timers } from '../timers.ts';
import { CallConnection, type CallServer } from './call-connection.ts';
import { type CallHead, callHead } from './call-head.ts';
import { statusBlock } from './header-blocks.ts';
import type { Implementation } from './implementation.ts';
import { Inflater } from './inflate.ts';
import { GRPC_LIMITS, type GrpcLimits } from './limits.ts';
import type { ServedMethod, ServiceDefinition } from './method.ts';
import { ServerCall } from './server-call.ts';
import { STATUS } from './status.ts';
import { StreamCall } from './stream-call.ts';
import { UnaryCall } from './unary-call.ts';

export interface GrpcServerOptions {
  readonly timers: Timers;
  /** Calls `work`, which processes the input of one read, at once: a caller can measure it. */
  readonly aroundRead?: (work: () => void) => void;
  readonly limits?: Partial<GrpcLimits>;
  /** A limit was reached. */
  readonly onRefused?: (limit: keyof GrpcLimits) => void;
  /** A method, or a handler that it has set, has thrown; the call was answered with INTERNAL. */
  readonly onMethodError?: (error: unknown, path: string) => void;
}

export interface AcceptOptions {
  /** Called when what the connection holds for its client has changed, so that a port can count it. */
  readonly onHeld?: (held: HeldBytes) => void;
  /** What the owner of the server keeps with the connection (`CallConnection.state`). */
  readonly state?: unknown;
}

/** What a server holds. */
export interface GrpcHeld {
  readonly connections: number;
  readonly streams: number;
  /** Bytes of frames and messages that are not whole, or not read by their methods. */
  readonly unfinishedBytes: number;
  /** Bytes of answers that wait for a window. */
  readonly outputBytes: number;
}

const DEADLINE_STEP_MS = 50;

export class GrpcServer implements CallServer, StreamUser {
  readonly limits: GrpcLimits;
  readonly timers: Timers;
  readonly inflater: Inflater;
  readonly #options: GrpcServerOptions;
  readonly #totals: Totals;
  readonly #methods = new Map<string, ServedMethod>();
  readonly #connections = new Set<Connection>();
  #ticking: PendingTimer | undefined;
  #deadlines: PendingTimer | undefined;
  #isDraining = false;
  #onEmpty: (() => void)[] = [];

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.timers = options.timers;
    this.limits = { ...GRPC_LIMITS, ...options.limits };
    this.inflater = new Inflater(this.limits, this.timers);
    this.#totals = new Totals(this.limits, this.timers, (limit) => this.refused(limit));
  }

  get held(): GrpcHeld {
    const { connections, streams, unfinishedBytes, outputBytes } = this.#totals;
    return { connections: connections.size, streams, unfinishedBytes, outputBytes };
  }

  /** Serves the methods of a definition, which the implementation has by the same names. */
  addService<Definition extends ServiceDefinition>(
    definition: Definition,
    implementation: Implementation<Definition>,
  ): void {
    for (const [name, method] of Object.entries(definition)) {
      const { path, requestStream, responseStream, requestDeserialize, responseSerialize } = method;
      const run = (implementation as Readonly<Record<string, (call: unknown) => void>>)[name];
      if (run === undefined) throw new TypeError(`no implementation of ${path}`);
      this.#methods.set(path, {
        path,
        isRequestStream: requestStream,
        isUnary: !requestStream && !responseStream,
        deserialize: requestDeserialize,
        serialize: responseSerialize as (message: unknown) => Uint8Array,
        run,
      });
    }
  }

  /** Serves a connection from its first byte on. */
  accept(socket: Duplex, { onHeld, state }: AcceptOptions = {}): void {
    const isFull = this.#connections.size >= this.limits.connectionsMax;
    if (isFull) this.refused('connectionsMax');
    if (isFull || this.#isDraining) {
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    const onClose = (): void => this.#closed(connection);
    const { timers } = this;
    const { aroundRead } = this.#options;
    const connection = serveConnection({ socket, timers, aroundRead, totals: this.#totals, onHeld, onClose }, this);
    connection.userState = new CallConnection(this, peerOf(socket), state);
    this.#connections.add(connection);
    this.#ticking ??= this.timers.setTimer(TICK_MS, () => this.#tick());
  }

  #closed(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    for (const resolve of this.#onEmpty) resolve();
    this.#onEmpty = [];
  }

  #tick(): void {
    this.#ticking = undefined;
    for (const connection of [...this.#connections]) connection.tick();
    if (this.#connections.size > 0) this.#ticking = this.timers.setTimer(TICK_MS, () => this.#tick());
  }

  /**
   * Accepts no more connections, and asks clients to make no more calls. Resolves when all calls have ended and all
   * connections are closed.
   */
  drain(): Promise<void> {
    this.#isDraining = true;
    for (const connection of this.#connections) connection.drain();
    if (this.#connections.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty.push(resolve);
    });
  }

  /** Ends everything: calls that are not answered are cancelled, connections close when their output is sent. */
  close(): void {
    this.#isDraining = true;
    for (const connection of [...this.#connections]) connection.close();
    this.#deadlines?.cancel();
  }

  open(connection: Connection, id: number, head: RequestHead | undefined, isEnd: boolean): Stream | undefined {
    if (head === undefined) {
      const message = `the header list is larger than ${this.limits.headerListBytesMax} bytes`;
      connection.answerAtOnce(id, statusBlock({ status: STATUS.resourceExhausted, message }, false), isEnd);
      return undefined;
    }
    head.parsed ??= callHead(head, this.#methods);
    const call = head.parsed as CallHead;
    if (call.refusal !== undefined || call.method === undefined) {
      connection.answerAtOnce(id, call.refusal ?? statusBlock(NO_METHOD, false), isEnd);
      return undefined;
    }
    if (call.method.isUnary) return new UnaryCall(connection, id, head, call, call.method);
    return new StreamCall(connection, id, head, call, call.method);
  }

  refused(limit: keyof GrpcLimits): void {
    this.#options.onRefused?.(limit);
  }

  threw(error: unknown, path: string): void {
    this.#options.onMethodError?.(error, path);
  }

  /** G2 */
  watchDeadlines(): void {
    this.#deadlines ??= this.timers.setTimer(DEADLINE_STEP_MS, () => this.#checkDeadlines());
  }

  #checkDeadlines(): void {
    this.#deadlines = undefined;
    const nowMs = this.timers.monotonicMs();
    let areMore = false;
    for (const connection of this.#connections) {
      for (const stream of connection.streams.all()) {
        if (!(stream instanceof ServerCall) || !stream.hasDeadline) continue;
        areMore = true;
        stream.checkDeadline(nowMs);
      }
    }
    if (areMore) this.watchDeadlines();
  }
}

const NO_METHOD = { status: STATUS.unimplemented, message: 'The server does not implement the method' } as const;

/** The address of a socket's other side. */
function peerOf(socket: Duplex): string {
  const { remoteAddress, remotePort } = socket as { readonly remoteAddress?: string; readonly remotePort?: number };
  if (remoteAddress === undefined) return '';
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
