import { type ServiceError, toServiceError } from '@remora/base';
import type { AcquireAs, HoldMode, LockId } from '@remora/lock';
import type { AcquireStats } from './acquire.ts';

type Attributes = Record<string, string | number>;

/** As much of OpenTelemetry's `Tracer` as is used: any tracer of `@opentelemetry/api` fits. */
export interface Tracer {
  startSpan(name: string, options?: { readonly attributes?: Attributes }): TracerSpan;
}

export interface TracerSpan {
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { readonly code: number; readonly message?: string }): unknown;
  recordException(exception: Error): void;
  end(): void;
}

/** `SpanStatusCode.ERROR`. */
const STATUS_ERROR = 2;

/** What came of an acquire, or of holding a lock. */
export interface TracedAcquire {
  granted(version: number, stats: AcquireStats): void;
  failed(error: unknown): void;
}

/** Of clients without a tracer: locks are acquired by the hundred thousand. */
const UNTRACED: TracedAcquire = { granted() {}, failed() {} };
const UNTRACED_HOLD = (): void => {};

/**
 * Two spans for each lock: `remora.lock.acquire` until it is granted or given up, and `remora.lock.hold` from then on until
 * it is released or lost. They belong to whatever span is active where the lock is acquired.
 *
 * TR1. What a tracer throws changes nothing about a lock: it is told to `onFailure`, and the lock goes on without it. It
 *      would leave a lock that was granted without a handle, or its owner's turn taken.
 */
export class Tracing {
  readonly #tracer: Tracer | undefined;
  readonly #onFailure: (error: unknown) => void;

  constructor(tracer: Tracer | undefined, onFailure: (error: unknown) => void) {
    this.#tracer = tracer;
    this.#onFailure = onFailure;
  }

  /** Call it in the caller's own turn, where its span is the active one. */
  acquire(lock: LockId, as: AcquireAs | undefined): TracedAcquire {
    const tracer = this.#tracer;
    if (tracer === undefined) return UNTRACED;
    const span = this.#safely(() => start(tracer, 'remora.lock.acquire', lock, as?.type ?? 'exclusive'));
    if (span === undefined) return UNTRACED;
    return {
      granted: (version, stats) => this.#safely(() => endGranted(span, version, stats)),
      failed: (error) => this.#safely(() => endWith(span, toServiceError(error))),
    };
  }

  /** Returns what ends the span: with the reason when the lock was lost. */
  hold(lock: LockId, mode: HoldMode, version: number): (lost?: ServiceError) => void {
    const tracer = this.#tracer;
    if (tracer === undefined) return UNTRACED_HOLD;
    const span = this.#safely(() => start(tracer, 'remora.lock.hold', lock, mode));
    if (span === undefined) return UNTRACED_HOLD;
    this.#safely(() => span.setAttributes({ 'remora.lock.version': version }));
    return (lost) => this.#safely(() => (lost === undefined ? span.end() : endWith(span, lost)));
  }

  /** TR1. */
  #safely<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#onFailure(error);
      return undefined;
    }
  }
}

function start(tracer: Tracer, name: string, lock: LockId, mode: string): TracerSpan {
  return tracer.startSpan(name, {
    attributes: {
      'remora.lock.namespace': lock.namespace,
      'remora.lock.name': Buffer.from(lock.name).toString(),
      'remora.lock.mode': mode,
    },
  });
}

function endGranted(span: TracerSpan, version: number, { queuePosition, attempts, gateway }: AcquireStats): void {
  span.setAttributes({
    'remora.lock.version': version,
    'remora.lock.queue_position': queuePosition,
    'remora.lock.attempts': attempts,
    'server.address': gateway,
  });
  span.end();
}

function endWith(span: TracerSpan, error: ServiceError): void {
  span.setAttributes({ 'error.type': error.code });
  span.recordException(error);
  span.setStatus({ code: STATUS_ERROR, message: error.message });
  span.end();
}
