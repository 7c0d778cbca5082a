import { type Clock, type ServiceError, toServiceError } from '@remora/base';
import type { AcquireAs, HoldMode, LockId } from '@remora/lock';
import type { AcquireStats } from '../lock/acquire.ts';
import type { ClientMetrics, HistogramName, MetricLabels } from './client-metrics.ts';

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

interface MeasuredBy {
  readonly collector: ClientMetrics;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export interface TracingOptions {
  readonly onFailure: (error: unknown) => void;
  /** Absent: nobody collects numbers. */
  readonly metrics?: MeasuredBy;
}

/**
 * Makes two spans for each lock: `remora.lock.acquire` until it is granted or given up, and `remora.lock.hold` from
 * then until it is released or lost. Their parent is the span that is active where the lock is acquired.
 *
 * TR1. An error of the tracer changes nothing about a lock: it is passed to `onFailure`, and the span is missing. It
 *      would otherwise leave a granted lock without a handle, or its owner's turn taken.
 */
export class Tracing {
  readonly #tracer: Tracer | undefined;
  readonly #options: TracingOptions;

  constructor(tracer: Tracer | undefined, options: TracingOptions) {
    this.#tracer = tracer;
    this.#options = options;
  }

  /** Call it synchronously from the caller's own call, where the caller's span is active. */
  acquire(lock: LockId, as: AcquireAs | undefined): TracedAcquire {
    const { metrics } = this.#options;
    const mode = as?.type ?? 'exclusive';
    const tracer = this.#tracer;
    const span = tracer && this.#safely(() => start(tracer, 'remora.lock.acquire', lock, mode));
    if (span === undefined && metrics === undefined) return UNTRACED;
    const measure = metrics && timed(metrics, 'remora_client_lock_wait_seconds');
    return {
      granted: (version, stats) => {
        measure?.({ mode, code: 'OK' });
        if (span !== undefined) this.#safely(() => endGranted(span, version, stats));
      },
      failed: (error) => {
        const failure = toServiceError(error);
        measure?.({ mode, code: failure.code });
        if (span !== undefined) this.#safely(() => endWith(span, failure));
      },
    };
  }

  /** Returns a function that ends the span, with the reason if the lock was lost. */
  hold(lock: LockId, mode: HoldMode, version: number): (lost?: ServiceError) => void {
    const { metrics } = this.#options;
    const tracer = this.#tracer;
    const span = tracer && this.#safely(() => start(tracer, 'remora.lock.hold', lock, mode));
    if (span === undefined && metrics === undefined) return UNTRACED_HOLD;
    const measure = metrics && timed(metrics, 'remora_client_lock_hold_seconds');
    if (span !== undefined) this.#safely(() => span.setAttributes({ 'remora.lock.version': version }));
    return (lost) => {
      measure?.({ mode, end: lost === undefined ? 'released' : 'lost' });
      if (span !== undefined) this.#safely(() => (lost === undefined ? span.end() : endWith(span, lost)));
    };
  }

  /** TR1. */
  #safely<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#options.onFailure(error);
      return undefined;
    }
  }
}

/** Returns a function that reports the time since now. */
function timed({ collector, clock }: MeasuredBy, name: HistogramName): (labels: MetricLabels) => void {
  const startedMs = clock.monotonicMs();
  return (labels) => collector.observe(name, (clock.monotonicMs() - startedMs) / 1_000, labels);
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
