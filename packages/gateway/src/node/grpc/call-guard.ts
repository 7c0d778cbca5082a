import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  sendUnaryData,
} from '@grpc/grpc-js';
import { type Logger, ServiceError, toServiceError } from '@remora/base';
import {
  callInfo,
  noteRevision,
  type StreamHandler,
  type StreamService,
  type TakeBack,
  type TimeoutLimits,
  type UnaryHandler,
  type WaitingHandler,
} from '../../calls.ts';
import { ConnectionRevisions } from './connection-revisions.ts';
import { untilDeadline } from './deadline.ts';
import { type StatusOf, toGrpcError } from './status.ts';

export interface CallLimits {
  /** Unary calls in flight in the whole server; further ones get RESOURCE_EXHAUSTED. A part of them may wait (C3). */
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

/** Counts refused calls. */
export interface RefusalListener {
  /** Called for each call that is refused because too many are in flight. */
  readonly onBusy?: () => void;
  /** Called for each unary call that is refused as malformed. */
  readonly onMalformed?: () => void;
}

/**
 * Adapts services to gRPC: limits, deadlines, cancellation, back-pressure and error statuses, the same for every call.
 *
 * C1. A call is answered at most once, and not after the client has given up.
 * C2. Unexpected errors are logged with their cause, and answered with INTERNAL.
 * C3. A call that may wait for as long as its client does is asked to give up when the server drains, and has the rest
 *     of the drain to take back what it has done. The number of these calls is bounded, which leaves room for others.
 */
export class CallGuard {
  readonly #limits: CallLimits;
  readonly #logger: Logger;
  /** Functions that end the open calls. */
  readonly #unaryCalls = new Set<(error: ServiceError) => void>();
  readonly #streams = new Set<(error: ServiceError) => void>();
  /** C3. */
  readonly #waiting = new Set<(error: ServiceError) => void>();
  readonly #refusals: RefusalListener;
  readonly #revisions = new ConnectionRevisions();
  #draining = false;
  #abandoned = false;

  constructor(limits: CallLimits, logger: Logger, refusals: RefusalListener = {}) {
    this.#limits = limits;
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
    for (const end of [...this.#streams, ...this.#waiting]) end(shuttingDown());
  }

  /** Answers the calls that are still open with UNKNOWN_OUTCOME. */
  abandon(): void {
    this.#abandoned = true;
    for (const end of [...this.#unaryCalls])
      end(
        new ServiceError(
          'UNKNOWN_OUTCOME',
          'this node shut down before it answered; the call may have been carried out',
        ),
      );
  }

  unary<Request, Response>(
    handler: UnaryHandler<Request, Response>,
    statusOf: StatusOf,
  ): handleUnaryCall<Request, Response> {
    return (call, callback) => {
      const refusal = this.#refusal(this.#unaryCalls.size, this.#limits.unaryCallsMax);
      if (refusal !== undefined) return callback(toGrpcError(refusal, statusOf));
      this.#runUnary(handler, statusOf, call, callback);
    };
  }

  /** C3. */
  waiting<Request, Response>(
    handler: WaitingHandler<Request, Response>,
    statusOf: StatusOf,
  ): handleUnaryCall<Request, Response> {
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
    return (call, callback) => {
      const refusal = this.#refusal(this.#waiting.size, waitingMax);
      if (refusal !== undefined) return callback(toGrpcError(refusal, statusOf));
      unary(call, callback);
    };
  }

  #runUnary<Request, Response>(
    handler: UnaryHandler<Request, Response>,
    statusOf: StatusOf,
    call: ServerUnaryCall<Request, Response>,
    callback: sendUnaryData<Response>,
  ): void {
    const seen = this.#revisions.of(call.getPeer());
    let settled = false;
    let giveUp: (() => void) | undefined;
    const settle = (error: ServiceError | undefined, response: Response | undefined): void => {
      if (settled) return; // C1
      settled = true;
      this.#unaryCalls.delete(end);
      if (response !== undefined) {
        noteRevision(seen, response);
        callback(null, response);
      } else callback(toGrpcError(this.#logged(error), statusOf));
    };
    const end = (error: ServiceError): void => {
      settle(error, undefined);
      giveUp?.();
    };
    this.#unaryCalls.add(end);
    call.on('cancelled', () => {
      if (settled) return;
      settled = true;
      this.#unaryCalls.delete(end);
      giveUp?.();
    });
    try {
      giveUp = handler(call.request, callInfo(untilDeadline(call.getDeadline()), this.#limits.timeouts, seen), settle);
    } catch (error) {
      const refusal = toServiceError(error);
      if (refusal.code !== 'INTERNAL' && refusal.code !== 'UNIMPLEMENTED') this.#refusals.onMalformed?.();
      settle(refusal, undefined);
    }
  }

  stream<Request, Response>(
    service: StreamService<Request, Response>,
    statusOf: StatusOf,
  ): handleBidiStreamingCall<Request, Response> {
    return (call) => {
      const refusal = this.#refusal(this.#streams.size, this.#limits.streamsMax);
      if (refusal !== undefined) return refuse(call, refusal, statusOf);
      this.#runStream(service, statusOf, call);
    };
  }

  /** Adapts a call with one request and a stream of answers. */
  serverStream<Request, Response>(
    service: StreamService<Request, Response>,
    statusOf: StatusOf,
  ): handleServerStreamingCall<Request, Response> {
    return (call) => {
      const refusal = this.#refusal(this.#streams.size, this.#limits.streamsMax);
      if (refusal !== undefined) return refuse(call, refusal, statusOf);
      this.#runStream(service, statusOf, call)(call.request);
    };
  }

  /** Returns the handler of the stream's requests. */
  #runStream<Request, Response>(
    service: StreamService<Request, Response>,
    statusOf: StatusOf,
    call: ServerDuplexStream<Request, Response> | ServerWritableStream<Request, Response>,
  ): (request: Request) => void {
    let over = false;
    const close = (): void => {
      if (over) return;
      over = true;
      this.#streams.delete(fail);
      handler.onClose();
    };
    const fail = (error: ServiceError): void => {
      if (over) return;
      close();
      call.emit('error', toGrpcError(this.#logged(error), statusOf));
    };
    this.#streams.add(fail);
    const seen = this.#revisions.of(call.getPeer());
    const sink = {
      write: (response: Response): boolean => {
        if (over) return true;
        noteRevision(seen, response);
        return call.write(response);
      },
      unread: (): number => call.writableLength,
      end: (error?: ServiceError): void => {
        if (error !== undefined) return fail(error);
        if (over) return;
        close();
        call.end();
      },
    };
    const handler: StreamHandler<Request> = service(sink, () => isDuplex(call) && call.resume(), seen);
    call.on('drain', () => over || handler.onDrain());
    call.on('cancelled', close);
    call.on('error', close);
    call.on('close', close);
    const take = (request: Request): void => {
      if (over) return;
      try {
        if (!handler.onRequest(request) && isDuplex(call)) call.pause();
      } catch (error) {
        fail(toServiceError(error));
      }
    };
    if (isDuplex(call)) {
      call.on('data', take);
      call.on('end', () => over || handler.onHalfClose());
    }
    return take;
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

function isDuplex<Request, Response>(
  call: ServerDuplexStream<Request, Response> | ServerWritableStream<Request, Response>,
): call is ServerDuplexStream<Request, Response> {
  return 'read' in call;
}

function refuse<Request, Response>(
  call: ServerDuplexStream<Request, Response> | ServerWritableStream<Request, Response>,
  refusal: ServiceError,
  statusOf: StatusOf,
): void {
  call.emit('error', toGrpcError(refusal, statusOf));
}
