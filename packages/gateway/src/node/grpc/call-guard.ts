import type { Identification } from '@remora/auth';
import { type ErrorCode, type Logger, ServiceError, toServiceError } from '@remora/base';
import type { CallConnection, StreamCall, StreamMethod, UnaryCall, UnaryMethod } from '@remora/grpc-server';
import {
  type CallerInfo,
  callInfo,
  noteRevision,
  type SeenRevision,
  type StreamHandler,
  type StreamService,
  type TakeBack,
  type TimeoutLimits,
  type UnaryHandler,
  type WaitingHandler,
} from '../../calls.ts';
import { OpenCall, OpenCalls } from './open-calls.ts';
import { grpcStatus, type StatusOf } from './status.ts';

export interface CallLimits {
  /** Unary calls in flight in the whole server; further ones get RESOURCE_EXHAUSTED. A part of them may wait (C4). */
  readonly unaryCallsMax: number;
  /** Open streams in the whole server; further ones get RESOURCE_EXHAUSTED. */
  readonly streamsMax: number;
  readonly timeouts: TimeoutLimits;
}

/**
 * The share of unary calls that may be waiting calls of etcd's locks and elections: the rest is for calls that end
 * waits. Waits for Remora's locks have half of all (`WAITS_MAX`).
 */
const WAITING_SHARE = 0.25;

/** What a call is refused with although it is well-formed. */
const NOT_MALFORMED: ReadonlySet<ErrorCode> = new Set([
  ...(['INTERNAL', 'UNIMPLEMENTED', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'UNAVAILABLE'] as const),
]);

interface Guarded<Request, Response> {
  readonly handler: UnaryHandler<Request, Response>;
  readonly statusOf: StatusOf;
  /** Whether the call takes no notice of who calls. */
  readonly forAll: boolean;
}

interface GuardedStream<Request, Response> {
  readonly service: StreamService<Request, Response>;
  readonly statusOf: StatusOf;
  /** Whether it answers requests of callers who could not prove who they are. */
  readonly answersRefusals: boolean;
}

/** Counts refused calls. */
export interface RefusalListener {
  /** Called for each call that is refused because too many are in flight. */
  readonly onBusy?: () => void;
  /** Called for each unary call that is refused as malformed. */
  readonly onMalformed?: () => void;
}

type RunningStream<Request> = Pick<StreamHandler<Request>, 'onRequest' | 'onHalfClose'>;

/**
 * Adapts services to gRPC: limits, deadlines, cancellation, back-pressure and error statuses, the same for every call.
 *
 * C1. A call is answered at most once, and not after the client has given up.
 * C2. Unexpected errors are logged with their cause, and answered with INTERNAL.
 * C3. A service that throws, or ends its stream while it is being made, leaves nothing behind: its stream is answered,
 *     closed and counted no more.
 * C4. A call that may wait for as long as its client does is asked to give up when the server drains, and has the rest
 *     of the drain to take back what it has done. The number of these calls is bounded, which leaves room for others.
 * C5. A stream counts from its first request, or its half-close: a client that opens streams and sends nothing in them
 *     takes no place from others. Until then, only the connection's limit and that of all streams hold for it.
 */
export class CallGuard {
  readonly #limits: CallLimits;
  readonly #logger: Logger;
  /** Open calls, to be ended by the server. */
  readonly #unaryCalls = new OpenCalls();
  readonly #streams = new Set<(error: ServiceError) => void>();
  /** Ends streams that have had no request yet (C5). */
  readonly #silent = new Set<(error: ServiceError) => void>();
  /** C4. */
  readonly #waiting = new Set<(error: ServiceError) => void>();
  readonly #refusals: RefusalListener;
  readonly #identification: Identification;
  #draining = false;
  #abandoned = false;

  constructor(limits: CallLimits, logger: Logger, identification: Identification, refusals: RefusalListener = {}) {
    this.#limits = limits;
    this.#identification = identification;
    this.#logger = logger;
    this.#refusals = refusals;
  }

  get load(): { readonly unaryCalls: number; readonly streams: number } {
    return { unaryCalls: this.#unaryCalls.size, streams: this.#streams.size };
  }

  /** Whether no call is answered any more; background work may end then. */
  get abandoned(): boolean {
    return this.#abandoned;
  }

  /** From now on, new calls and open streams end with UNAVAILABLE, so that clients turn to another node. */
  drain(): void {
    this.#draining = true;
    for (const end of [...this.#silent, ...this.#streams, ...this.#waiting]) end(shuttingDown());
  }

  /** Answers the calls that are still open with UNKNOWN_OUTCOME. */
  abandon(): void {
    this.#abandoned = true;
    this.#unaryCalls.end(
      new ServiceError('UNKNOWN_OUTCOME', 'this node shut down before it answered; the call may have been carried out'),
    );
  }

  unary<Request, Response>(
    handler: UnaryHandler<Request, Response>,
    statusOf: StatusOf,
    forAll = false,
  ): UnaryMethod<Request, Response> {
    return (call) => {
      const refusal = this.#refusal(this.#unaryCalls.size, this.#limits.unaryCallsMax);
      if (refusal !== undefined) return fail(call, refusal, statusOf);
      this.#runUnary({ handler, statusOf, forAll }, call);
    };
  }

  /** C4. */
  waiting<Request, Response>(
    handler: WaitingHandler<Request, Response>,
    statusOf: StatusOf,
  ): UnaryMethod<Request, Response> {
    const unary = this.unary<Request, Response>((request, call, done) => {
      let [over, takeBack]: [boolean, TakeBack] = [false, () => {}];
      takeBack = handler(request, call, (error, response) => {
        over = true;
        this.#waiting.delete(takeBack);
        done(error, response);
      });
      if (!over) this.#waiting.add(takeBack);
      return takeBack;
    }, statusOf);
    const waitingMax = Math.ceil(this.#limits.unaryCallsMax * WAITING_SHARE);
    return (call) => {
      const refusal = this.#refusal(this.#waiting.size, waitingMax);
      if (refusal !== undefined) return fail(call, refusal, statusOf);
      unary(call);
    };
  }

  #runUnary<Request, Response>(
    { handler, statusOf, forAll }: Guarded<Request, Response>,
    call: UnaryCall<Request, Response>,
  ): void {
    const connection = connectionOf(call.connection);
    const { seen } = connection;
    const open = new OpenCall(this.#unaryCalls);
    const settle = (error: ServiceError | undefined, response: Response | undefined): void => {
      if (!open.close()) return; // C1
      if (response !== undefined) {
        noteRevision(seen, response);
        call.respond(response);
      } else fail(call, this.#logged(error), statusOf);
    };
    open.onEnd = (error) => settle(error, undefined);
    call.onCancelled = () => {
      if (open.close()) open.giveUp?.();
    };
    try {
      const principal = forAll ? undefined : this.#principalOf(call, connection);
      const trace = call.metadata.get('traceparent');
      const caller = { seen, principal, door: 'grpc' as const, address: connection.address, trace };
      open.giveUp = handler(call.request, callInfo(call.deadlineMs, this.#limits.timeouts, caller), settle);
    } catch (error) {
      const refusal = toServiceError(error);
      if (!NOT_MALFORMED.has(refusal.code)) this.#refusals.onMalformed?.();
      settle(refusal, undefined);
    }
  }

  stream<Request, Response>(
    service: StreamService<Request, Response>,
    statusOf: StatusOf,
    answersRefusals = false,
  ): StreamMethod<Request, Response> {
    return (call) => {
      if (this.#draining) return fail(call, shuttingDown(), statusOf);
      const endSilent = (error: ServiceError): void => {
        this.#silent.delete(endSilent);
        fail(call, error, statusOf);
      };
      this.#silent.add(endSilent); // C5
      call.onCancelled = () => this.#silent.delete(endSilent);
      let handler: RunningStream<Request> | undefined;
      const begun = (): RunningStream<Request> | undefined => {
        if (handler !== undefined || !this.#silent.delete(endSilent)) return handler;
        const refusal = this.#refusal(this.#streams.size, this.#limits.streamsMax);
        if (refusal !== undefined) return void fail(call, refusal, statusOf);
        handler = this.#runStream({ service, statusOf, answersRefusals }, call);
        return handler;
      };
      call.onRequest = (request) => {
        if (begun()?.onRequest(request) === false) call.pause();
      };
      call.onHalfClose = () => begun()?.onHalfClose();
    };
  }

  /** Adapts a call with one request and a stream of answers. */
  serverStream<Request, Response>(
    service: StreamService<Request, Response>,
    statusOf: StatusOf,
  ): StreamMethod<Request, Response> {
    return (call) => {
      call.onRequest = (request) => {
        const refusal = this.#refusal(this.#streams.size, this.#limits.streamsMax);
        if (refusal !== undefined) return fail(call, refusal, statusOf);
        this.#runStream({ service, statusOf, answersRefusals: false }, call).onRequest(request);
      };
    };
  }

  /** Returns the handler of the stream's requests. It does not throw, and does nothing once the stream is over. */
  #runStream<Request, Response>(
    { service, statusOf, answersRefusals }: GuardedStream<Request, Response>,
    call: StreamCall<Request, Response>,
  ): RunningStream<Request> {
    let over = false;
    let handler: StreamHandler<Request> | undefined;
    const close = (): void => {
      if (over) return;
      over = true;
      this.#streams.delete(end);
      this.#closed(handler);
    };
    const end = (error: ServiceError): void => {
      if (over) return;
      close();
      fail(call, this.#logged(error), statusOf);
    };
    this.#streams.add(end);
    const connection = connectionOf(call.connection);
    const { seen } = connection;
    const sink = {
      write: (response: Response): boolean => {
        if (over) return true;
        noteRevision(seen, response);
        return call.write(response);
      },
      unread: (): number => call.unread(),
      end: (error?: ServiceError): void => {
        if (error !== undefined) return end(error);
        if (over) return;
        close();
        call.end();
      },
    };
    call.onCancelled = close;
    try {
      handler = service(sink, () => call.resume(), this.#streamCaller(call, connection, answersRefusals));
      if (over) this.#closed(handler); // C3
    } catch (error) {
      end(toServiceError(error));
    }
    call.onDrain = () => over || handler?.onDrain();
    return {
      onRequest: (request) => {
        if (over || handler === undefined) return true;
        try {
          return handler.onRequest(request);
        } catch (error) {
          end(toServiceError(error));
          return true;
        }
      },
      onHalfClose: () => over || handler?.onHalfClose(),
    };
  }

  #streamCaller(
    call: Pick<UnaryCall<unknown, unknown>, 'metadata'>,
    connection: ConnectionState,
    answersRefusals: boolean,
  ): CallerInfo {
    const { seen } = connection;
    try {
      return { seen, principal: this.#principalOf(call, connection) };
    } catch (error) {
      if (answersRefusals && error instanceof ServiceError) return { seen, principal: undefined, refusal: error };
      throw error;
    }
  }

  /** C2, C3. */
  #closed(handler: StreamHandler<never> | undefined): void {
    try {
      handler?.onClose();
    } catch (error) {
      this.#logged(toServiceError(error));
    }
  }

  /** etcd's clients send their token with each call (etcd `api/v3rpc/rpctypes/metadatafields.go`). */
  #principalOf(call: Pick<UnaryCall<unknown, unknown>, 'metadata'>, { certificateName, address }: ConnectionState) {
    const identification = this.#identification;
    // While authentication is off, no etcd client has a token.
    const token = identification.isOff ? undefined : call.metadata.get('token');
    return identification.identify({ token, certificateName, door: 'grpc', address });
  }

  #refusal(current: number, max: number): ServiceError | undefined {
    if (this.#draining) return shuttingDown();
    if (current < max) return undefined;
    this.#refusals.onBusy?.();
    return new ServiceError('RESOURCE_EXHAUSTED', 'this node has too many calls in flight; try again later');
  }

  /** C2 */
  #logged(error: ServiceError | undefined): ServiceError {
    const known = error ?? new ServiceError('INTERNAL', 'a service returned neither a response nor an error');
    if (known.code === 'INTERNAL') this.#logger.error({ error: known.message, cause: known.cause }, 'a call failed');
    return known;
  }
}

function shuttingDown(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'this node is shutting down');
}

/** Kept with the connection, so it goes with it. */
export interface ConnectionState {
  readonly seen: SeenRevision;
  /** The name of its verified certificate. */
  readonly certificateName: string | undefined;
  /** Its address, without the port. */
  readonly address: string | undefined;
}

/** The port that accepted a connection may have given it a state that names its certificate. */
function connectionOf(connection: CallConnection): ConnectionState {
  connection.state ??= {
    seen: { newest: 0 },
    certificateName: undefined,
    address: undefined,
  } satisfies ConnectionState;
  return connection.state as ConnectionState;
}

function fail(call: Pick<UnaryCall<unknown, unknown>, 'fail'>, error: ServiceError, statusOf: StatusOf): void {
  const { status, message, trailers } = grpcStatus(error, statusOf);
  call.fail(status, message, trailers);
}
