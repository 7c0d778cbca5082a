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
 */
export class Tracing {
  readonly #tracer: Tracer | undefined;

  constructor(tracer: Tracer | undefined) {
    this.#tracer = tracer;
  }

  /** Call it in the caller's own turn, where its span is the active one. */
  acquire(lock: LockId, as: AcquireAs | undefined): TracedAcquire {
    if (this.#tracer === undefined) return UNTRACED;
    const span = start(this.#tracer, 'remora.lock.acquire', lock, as?.type ?? 'exclusive');
    return {
      granted(version, { queuePosition, attempts, gateway }) {
        span.setAttributes({
          'remora.lock.version': version,
          'remora.lock.queue_position': queuePosition,
          'remora.lock.attempts': attempts,
          'server.address': gateway,
        });
        span.end();
      },
      failed: (error) => endWith(span, toServiceError(error)),
    };
  }

  /** Returns what ends the span: with the reason when the lock was lost. */
  hold(lock: LockId, mode: HoldMode, version: number): (lost?: ServiceError) => void {
    if (this.#tracer === undefined) return UNTRACED_HOLD;
    const span = start(this.#tracer, 'remora.lock.hold', lock, mode);
    span.setAttributes({ 'remora.lock.version': version });
    return (lost) => {
      if (lost === undefined) span.end();
      else endWith(span, lost);
    };
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

function endWith(span: TracerSpan, error: ServiceError): void {
  span.setAttributes({ 'error.type': error.code });
  span.recordException(error);
  span.setStatus({ code: STATUS_ERROR, message: error.message });
  span.end();
}
