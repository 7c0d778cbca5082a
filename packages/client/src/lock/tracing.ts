import { type ServiceError, toServiceError } from '@remora/base';
import type { AcquireAs, HoldMode, LockId } from '@remora/lock';
import type { AcquireStats } from './acquire.ts';

type Attributes = Record<string, string | number>;

/** The part of OpenTelemetry's `Tracer` that the client uses: any tracer of `@opentelemetry/api` fits. */
export interface Tracer {
  startSpan(name: string, options?: { readonly attributes?: Attributes }): TracerSpan;
}

/** The part of OpenTelemetry's `Span` that the client uses. */
export interface TracerSpan {
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { readonly code: number; readonly message?: string }): unknown;
  recordException(exception: Error): void;
  end(): void;
}

/** `SpanStatusCode.ERROR`. */
const STATUS_ERROR = 2;

/** Reports how an acquire ended. */
export interface TracedAcquire {
  granted(version: number, stats: AcquireStats): void;
  failed(error: unknown): void;
}

/** For clients without a tracer, which acquire locks by the hundred thousand. */
const UNTRACED: TracedAcquire = { granted() {}, failed() {} };
const UNTRACED_HOLD = (): void => {};

/**
 * Makes two spans for each lock: `remora.lock.acquire` until it is granted or given up, and `remora.lock.hold` from
 * then until it is released or lost. Their parent is the span that is active where the lock is acquired.
 *
 * TR1. An error of the tracer changes nothing about a lock: it is passed to `onFailure`, and the span is missing. It
 *      would otherwise leave a granted lock without a handle, or its owner's turn taken.
 */
export class Tracing {
  readonly #tracer: Tracer | undefined;
  readonly #onFailure: (error: unknown) => void;

  constructor(tracer: Tracer | undefined, onFailure: (error: unknown) => void) {
    this.#tracer = tracer;
    this.#onFailure = onFailure;
  }

  /** Call it synchronously from the caller's own call, where the caller's span is active. */
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

  /** Returns a function that ends the span, with the reason if the lock was lost. */
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
