import type { ServiceError } from '@remora/base';
import type { QueryResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Backend, BackendReply } from '../backend.ts';
import { callInfo, type StreamHandler, type StreamSink, type TimeoutLimits } from '../calls.ts';
import type { Headers } from './headers.ts';
import { expectType } from './kv-responses.ts';
import { toTtlSeconds } from './lease-service.ts';
import type { EtcdLimits } from './limits.ts';

/**
 * `Lease.LeaseKeepAlive`: heartbeats of any number of leases, answered as their outcomes come.
 *
 * A1. The stream is not read further while `keepAlivesPendingMax` heartbeats are under way, or while the client does
 *     not take the answers.
 * A2. A lease that is gone is answered with TTL 0. Any other failure ends the stream, as in etcd: a client opens
 *     another one and goes on; an answer would mean that the lease was renewed or is gone, and neither is known.
 */
export class KeepAliveStream implements StreamHandler<pb.LeaseKeepAliveRequest> {
  readonly #backend: Backend;
  readonly #headers: Headers;
  readonly #sink: StreamSink<pb.LeaseKeepAliveResponse>;
  readonly #resumeReading: () => void;
  readonly #pendingMax: number;
  readonly #timeouts: TimeoutLimits;
  readonly #pending = new Set<Pending>();
  #halfClosed = false;
  #over = false;
  /** The stream is not being read. */
  #full = false;
  #blocked = false;

  constructor(
    services: { readonly backend: Backend; readonly headers: Headers },
    limits: EtcdLimits,
    timeouts: TimeoutLimits,
    sink: StreamSink<pb.LeaseKeepAliveResponse>,
    resumeReading: () => void,
  ) {
    this.#backend = services.backend;
    this.#headers = services.headers;
    this.#pendingMax = limits.keepAlivesPendingMax;
    this.#timeouts = timeouts;
    this.#sink = sink;
    this.#resumeReading = resumeReading;
  }

  onRequest(request: pb.LeaseKeepAliveRequest): boolean {
    if (this.#over) return true;
    const entry: Pending = { giveUp: () => {} };
    this.#pending.add(entry);
    entry.giveUp = this.#backend.query(
      { type: 'leaseKeepAlive', id: request.ID, incarnation: 0 },
      callInfo(undefined, this.#timeouts),
      (error, reply) => {
        this.#pending.delete(entry);
        if (!this.#over) this.#answer(request.ID, error, reply);
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

  #answer(id: bigint, error: ServiceError | undefined, reply: BackendReply<QueryResult> | undefined): void {
    if (reply !== undefined) {
      const { ttlMs } = expectType(reply.result, 'leaseKeepAlive');
      const header = this.#headers.make(reply.revision, reply.raftTerm);
      this.#write({ header, ID: id, TTL: ttlMs < 0 ? 0 : toTtlSeconds(ttlMs) });
    } else if (error?.code === 'LEASE_NOT_FOUND') {
      this.#write({ header: this.#headers.make(0, 0), ID: id, TTL: 0 });
    } else {
      this.#finish();
      return this.#sink.end(error);
    }
    this.#endIfDone();
    this.#readOn();
  }

  #write(response: pb.LeaseKeepAliveResponse): void {
    if (!this.#sink.write(response)) this.#blocked = true;
  }

  #endIfDone(): void {
    if (!this.#halfClosed || this.#over || this.#pending.size > 0) return;
    this.#finish();
    this.#sink.end();
  }

  /** A1 */
  #isFull(): boolean {
    return this.#blocked || this.#pending.size >= this.#pendingMax;
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
