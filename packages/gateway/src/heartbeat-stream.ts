import type { ServiceError } from '@remora/base';
import type { QueryResult } from '@remora/protocol';
import type { Backend, BackendReply } from './backend.ts';
import { type CallerInfo, callTimeoutMs, type StreamHandler, type StreamSink, type TimeoutLimits } from './calls.ts';

/** How one API encodes heartbeats and their answers. */
export interface HeartbeatCodec<Request, Response> {
  lease(request: Request): { readonly id: bigint; readonly incarnation: number };
  renewed(request: Request, ttlMs: number, reply: BackendReply<QueryResult>): Response;
  gone(request: Request): Response;
  /** The answer if it is unknown whether the lease was renewed or is gone. Undefined ends the stream with the error. */
  failed(request: Request, error: ServiceError): Response | undefined;
}

export interface HeartbeatLimits {
  /** Heartbeats of one stream without an answer; above it the stream is not read further. */
  readonly pendingMax: number;
  readonly timeouts: TimeoutLimits;
}

/**
 * A stream of heartbeats for any number of leases, which are answered in the order in which their outcomes come.
 *
 * A1. The stream is not read further while `pendingMax` heartbeats are in flight, or while the client does not read
 *     answers.
 * A2. An answer says renewed or gone only if the range said so after it got this heartbeat.
 * A3. The credentials of a stream are those with which it began. Each heartbeat is decided about, so heartbeats of a
 *     user who is gone, or has another password now, are refused (auth's authority.ts D6).
 */
export class HeartbeatStream<Request, Response> implements StreamHandler<Request> {
  readonly #backend: Backend;
  readonly #codec: HeartbeatCodec<Request, Response>;
  readonly #limits: HeartbeatLimits;
  readonly #sink: StreamSink<Response>;
  readonly #resumeReading: () => void;
  readonly #principal: CallerInfo['principal'];
  readonly #pending = new Set<Pending>();
  #halfClosed = false;
  #over = false;
  /** Whether reading is suspended (A1). */
  #full = false;
  #blocked = false;

  constructor(
    backend: Backend,
    codec: HeartbeatCodec<Request, Response>,
    limits: HeartbeatLimits,
    stream: {
      readonly sink: StreamSink<Response>;
      readonly resumeReading: () => void;
      readonly caller: CallerInfo;
    },
  ) {
    this.#backend = backend;
    this.#codec = codec;
    this.#limits = limits;
    this.#sink = stream.sink;
    this.#resumeReading = stream.resumeReading;
    this.#principal = stream.caller.principal;
  }

  onRequest(request: Request): boolean {
    if (this.#over) return true;
    const { id, incarnation } = this.#codec.lease(request);
    const entry: Pending = { giveUp: () => {} };
    this.#pending.add(entry);
    entry.giveUp = this.#backend.query(
      { type: 'leaseKeepAlive', id, incarnation },
      { timeoutMs: callTimeoutMs(undefined, this.#limits.timeouts), principal: this.#principal }, // A3
      (error, reply) => {
        this.#pending.delete(entry);
        if (!this.#over) this.#answer(request, error, reply);
      },
    );
    this.#full = this.#isFull();
    return !this.#full;
  }

  onDrain(): void {
    this.#blocked = false;
    this.#readOn();
  }

  onHalfClose(): void {
    this.#halfClosed = true;
    this.#endIfDone();
  }

  onClose(): void {
    this.#finish();
  }

  /** A2 */
  #answer(request: Request, error: ServiceError | undefined, reply: BackendReply<QueryResult> | undefined): void {
    let response: Response | undefined;
    if (reply?.result.type === 'leaseKeepAlive') {
      const { ttlMs } = reply.result;
      response = ttlMs < 0 ? this.#codec.gone(request) : this.#codec.renewed(request, ttlMs, reply);
    } else if (error?.code === 'LEASE_NOT_FOUND') response = this.#codec.gone(request);
    else if (error !== undefined) response = this.#codec.failed(request, error);

    if (response === undefined) {
      this.#finish();
      return this.#sink.end(error);
    }
    if (!this.#sink.write(response)) this.#blocked = true;
    this.#endIfDone();
    this.#readOn();
  }

  #endIfDone(): void {
    if (!this.#halfClosed || this.#over || this.#pending.size > 0) return;
    this.#finish();
    this.#sink.end();
  }

  /** A1 */
  #isFull(): boolean {
    return this.#blocked || this.#pending.size >= this.#limits.pendingMax;
  }

  #readOn(): void {
    if (this.#over || !this.#full || this.#isFull()) return;
    this.#full = false;
    this.#resumeReading();
  }

  #finish(): void {
    this.#over = true;
    for (const { giveUp } of this.#pending) giveUp();
    this.#pending.clear();
  }
}

interface Pending {
  giveUp: () => void;
}
