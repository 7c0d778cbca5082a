import { type Clock, type Logger, ServiceError, TokenBucket } from '@remora/base';
import type { RequestClass } from '@remora/protocol';

/** Tokens accumulate for this long while there is less load: about as long as a busy event loop delays requests. */
const BURST_SECONDS = 0.5;
/** The pause that a refusal tells the client to make, before the client's own growing pauses. */
const RETRY_AFTER_MS = 100;
/** At most one line in the log about refusals in this time. */
const LOG_INTERVAL_MS = 10_000;

export interface AdmissionOptions {
  /** Ordinary requests per second that this gateway admits, from all its clients together; 0: no limit. */
  readonly requestsPerSecondMax: number;
}

/**
 * Why a gateway refused a request. `rate`: the limit of requests per second; `calls`: too many requests in flight, on
 * one connection or on all; `waits`: too many requests that wait for locks.
 */
type Refusal = 'rate' | 'calls' | 'waits';

/** The API through which a request came. */
export type Door = 'pipe' | 'grpc' | 'http';

export interface AdmissionStats {
  /** Requests that were admitted, by class. */
  readonly admitted: Readonly<Record<RequestClass, number>>;
  readonly refused: Readonly<Record<Refusal, number>>;
  /** Requests that were refused as malformed, by API; they were not sent to a range. */
  readonly malformed: Readonly<Record<Door, number>>;
}

/**
 * Decides which requests a gateway admits, through all of its APIs.
 *
 * A1. A refusal is definite: the gateway has not sent the request to a range, and nothing was changed.
 * A2. Only ordinary requests are refused (`RequestClass`).
 * A3. A refusal is cheap: all refused requests get the same error object.
 */
export class Admission {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #limit: number;
  readonly #bucket: TokenBucket | undefined;
  readonly #refusal: ServiceError;
  readonly #admitted = { ordinary: 0, charged: 0, free: 0 };
  readonly #refused = { rate: 0, calls: 0, waits: 0 };
  readonly #malformed = { pipe: 0, grpc: 0, http: 0 };
  #loggedMs = Number.NEGATIVE_INFINITY;
  #refusedAtLog = 0;

  constructor(ports: { readonly clock: Clock; readonly logger: Logger }, { requestsPerSecondMax }: AdmissionOptions) {
    this.#clock = ports.clock;
    this.#logger = ports.logger;
    this.#limit = requestsPerSecondMax;
    if (requestsPerSecondMax > 0) {
      const options = { ratePerSecond: requestsPerSecondMax, burst: requestsPerSecondMax * BURST_SECONDS };
      this.#bucket = new TokenBucket(options, ports.clock.monotonicMs());
    }
    this.#refusal = new ServiceError(
      'RESOURCE_EXHAUSTED',
      `this gateway accepts at most ${requestsPerSecondMax} requests per second (--requests-per-second-max); the request was not executed`,
      { details: { retryAfterMs: RETRY_AFTER_MS } },
    );
  }

  get stats(): AdmissionStats {
    return { admitted: this.#admitted, refused: this.#refused, malformed: this.#malformed };
  }

  /** Returns the refusal, or undefined if the request is admitted. */
  admit(requestClass: RequestClass): ServiceError | undefined {
    if (this.#bucket !== undefined && requestClass !== 'free') {
      const nowMs = this.#clock.monotonicMs();
      if (requestClass === 'charged') this.#bucket.take(nowMs);
      else if (!this.#bucket.tryTake(nowMs)) return this.#refuse(nowMs);
    }
    this.#admitted[requestClass]++;
    return undefined;
  }

  /** Counts a request that was refused elsewhere in the gateway because too many are in flight. */
  readonly countBusy = (): void => {
    this.#refused.calls++;
  };

  /** Counts a wait that was refused elsewhere in the gateway because too many requests wait. */
  readonly countWait = (): void => {
    this.#refused.waits++;
  };

  /** Counts a request that was refused elsewhere in the gateway as malformed, or too large. */
  countMalformed(door: Door): void {
    this.#malformed[door]++;
  }

  #refuse(nowMs: number): ServiceError {
    this.#refused.rate++;
    if (nowMs - this.#loggedMs >= LOG_INTERVAL_MS) {
      this.#loggedMs = nowMs;
      const refused = this.#refused.rate - this.#refusedAtLog;
      this.#refusedAtLog = this.#refused.rate;
      this.#logger.warn({ limitPerSecond: this.#limit, refused }, 'refused requests above --requests-per-second-max');
    }
    return this.#refusal;
  }
}
