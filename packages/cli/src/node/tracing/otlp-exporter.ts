/**
 * Sends spans to a collector by OTLP/HTTP with JSON (https://opentelemetry.io/docs/specs/otlp/). Loaded only if
 * `--otlp-endpoint` is given.
 *
 * OE1. At most `SPANS_WAITING_MAX` spans wait; further ones are dropped and counted. One request is in progress at a
 *      time, and has `TIMEOUT_MS`.
 * OE2. Spans of a request that failed are dropped: a collector that is away costs a node no memory, and delays its end
 *      by at most `CLOSING_MS`.
 */
import { type Clock, type Counter, type Logger, type Metrics, RareLog, type Timer } from '@remora/base';
import type { Span, SpanSink } from '@remora/gateway';
import { CommandError } from '../../exit-codes.ts';

/** OE1. */
const SPANS_WAITING_MAX = 4_096;
const SPANS_SENT_MAX = 512;
const TIMEOUT_MS = 5_000;
const CLOSING_MS = 1_000;
/** Spans wait this long for others to share a request. */
const GATHER_MS = 1_000;
const MS_NANOS = 1_000_000n;
/** OTLP's numbers for a span of a server, and for one that failed. */
const KIND_SERVER = 2;
const STATUS_ERROR = 2;

export interface OtlpExporterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Sends a request; a node uses `fetch`. */
  readonly send: (
    url: string,
    body: string,
    signal: AbortSignal,
  ) => Promise<{ readonly ok: boolean; readonly status: number }>;
}

export interface OtlpExporterOptions {
  /** The base URL of the collector: `/v1/traces` is added. */
  readonly endpoint: string;
  /** What the spans say of their origin. */
  readonly resource: Readonly<Record<string, string>>;
}

export class OtlpExporter implements SpanSink {
  readonly #deps: OtlpExporterDeps;
  readonly #url: string;
  readonly #resource: readonly Attribute[];
  readonly #log: RareLog;
  readonly #exported: Counter;
  readonly #dropped: Counter;
  readonly #stop = new AbortController();
  readonly #waiting: Span[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  /** @throws CommandError `usage` for an endpoint that is no URL of HTTP. */
  constructor(deps: OtlpExporterDeps, { endpoint, resource }: OtlpExporterOptions) {
    this.#deps = deps;
    this.#url = tracesUrl(endpoint);
    this.#resource = attributesOf(resource);
    this.#log = new RareLog(deps.clock, deps.logger);
    const spans = deps.metrics.counter({
      ...{ name: 'remora_trace_spans_total', labels: ['outcome'] },
      help: 'Spans of traced requests: exported to the collector, or dropped.',
    });
    this.#exported = spans.labels('exported');
    this.#dropped = spans.labels('dropped');
  }

  add(span: Span): void {
    if (this.#stop.signal.aborted || this.#waiting.length >= SPANS_WAITING_MAX) return this.#dropped.inc(); // OE1
    this.#waiting.push(span);
    this.#timer ??= this.#deps.clock.setTimer(GATHER_MS, () => this.#flush());
  }

  /** Sends what waits, once, and accepts nothing more. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    const giveUp = this.#deps.clock.setTimer(CLOSING_MS, () => this.#stop.abort(new Error('the node is stopping')));
    await this.#sending;
    if (this.#waiting.length > 0) await this.#send(this.#waiting.splice(0, SPANS_SENT_MAX));
    giveUp.cancel();
    this.#stop.abort();
  }

  #flush(): void {
    this.#timer = undefined;
    if (this.#sending !== undefined || this.#waiting.length === 0) return;
    this.#sending = this.#send(this.#waiting.splice(0, SPANS_SENT_MAX)).finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length > 0 && !this.#stop.signal.aborted) this.#flush();
    });
  }

  /** Never rejects (OE2). */
  async #send(spans: readonly Span[]): Promise<void> {
    const { clock, send } = this.#deps;
    const late = new AbortController();
    const timer = clock.setTimer(TIMEOUT_MS, () => late.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    const giveUp = (): void => late.abort(this.#stop.signal.reason);
    this.#stop.signal.addEventListener('abort', giveUp);
    let reason: string;
    try {
      this.#stop.signal.throwIfAborted();
      const { ok, status } = await send(this.#url, JSON.stringify(this.#body(spans)), late.signal);
      if (ok) return this.#exported.inc(spans.length);
      reason = `status ${status}`;
    } catch (error) {
      reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    } finally {
      timer.cancel();
      this.#stop.signal.removeEventListener('abort', giveUp);
    }
    this.#dropped.inc(spans.length);
    this.#log.warn('collector', { url: this.#url, spans: spans.length, reason }, 'the collector did not take spans');
  }

  #body(spans: readonly Span[]) {
    const scopeSpans = [{ scope: { name: 'remora' }, spans: spans.map(spanJson) }];
    return { resourceSpans: [{ resource: { attributes: this.#resource }, scopeSpans }] };
  }
}

function tracesUrl(endpoint: string): string {
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol)) {
    throw new CommandError('usage', `--otlp-endpoint: expected a URL such as http://127.0.0.1:4318, got ${endpoint}`);
  }
  return `${endpoint.replace(/\/+$/, '')}/v1/traces`;
}

type Attribute = {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
};

function attributesOf(values: Readonly<Record<string, string | number>>): readonly Attribute[] {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** OTLP's JSON: ids in hexadecimal, times in nanoseconds as text. */
function spanJson({ traceId, spanId, parentSpanId, name, startMs, tookMs, attributes, error }: Span) {
  const startNanos = BigInt(Math.round(startMs)) * MS_NANOS;
  const endNanos = startNanos + BigInt(Math.round(tookMs * 1_000_000));
  const all = error === undefined ? attributes : { ...attributes, 'error.type': error };
  return {
    ...{ traceId, spanId, parentSpanId, name, kind: KIND_SERVER },
    ...{ startTimeUnixNano: String(startNanos), endTimeUnixNano: String(endNanos) },
    attributes: attributesOf(all),
    status: error === undefined ? {} : { code: STATUS_ERROR, message: error },
  };
}
