/**
 * Spans of requests whose callers sent a trace context. A gateway has this backend only if it exports spans.
 *
 * TB1. The caller decides whether a request is traced: a request without a context, or with one that is not sampled,
 *      gets no span.
 * TB2. A span has no keys, values, names of locks, tokens or request ids: more people may see the collected traces than
 *      the cluster.
 * TB3. A span ends once: with the answer, or when the caller gives up.
 */
import type { Clock, Random } from '@remora/base';
import { type Command, type CommandResult, type Query, type QueryResult, requestTag } from '@remora/protocol';
import type { Backend, BackendDone, RequestOptions } from '../backend.ts';
import { BackendDecorator } from '../backend-decorator.ts';
import { kindOf } from '../routing/calls/request-meter.ts';
import { parseTraceparent } from './trace-context.ts';

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** Wall time. */
  readonly startMs: number;
  readonly tookMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The code of the error with which the request ended. */
  readonly error: string | undefined;
}

/** Takes spans that have ended. It must not throw. */
export interface SpanSink {
  add(span: Span): void;
}

export interface TracedBackendDeps {
  readonly backend: Backend;
  readonly spans: SpanSink;
  readonly clock: Clock;
  readonly random: Random;
}

/** Watches last: they have no spans. */
export class TracedBackend extends BackendDecorator {
  readonly #deps: TracedBackendDeps;

  constructor(deps: TracedBackendDeps) {
    super(deps.backend);
    this.#deps = deps;
  }

  override command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const end = this.#begin(options, () => kindOf({ kind: 'command', command }));
    if (end === undefined) return super.command(command, options, done);
    const giveUp = super.command(command, options, (error, reply) => {
      end(error?.code, reply?.queuedAt);
      done(error, reply);
    });
    return () => {
      end('CANCELED');
      giveUp();
    };
  }

  override query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const end = this.#begin(options, () => kindOf({ kind: 'query', query, notBefore: 0 }));
    if (end === undefined) return super.query(query, options, done);
    const giveUp = super.query(query, options, (error, reply) => {
      end(error?.code);
      done(error, reply);
    });
    return () => {
      end('CANCELED');
      giveUp();
    };
  }

  /** TB1. Returns a function that ends the span. */
  #begin({ trace, requestId }: RequestOptions, kindOfRequest: () => string) {
    const context = trace === undefined ? undefined : parseTraceparent(trace);
    if (context?.isSampled !== true) return undefined;
    const { clock, random, spans } = this.#deps;
    const { traceId, spanId: parentSpanId } = context;
    const spanId = Buffer.from(random.bytes(8)).toString('hex');
    const startMs = clock.wallMs();
    const sinceMs = clock.monotonicMs();
    const kind = kindOfRequest();
    let isOver = false;
    return (error: string | undefined, queuedAt?: number): void => {
      if (isOver) return; // TB3
      isOver = true;
      const attributes = {
        'remora.kind': kind,
        'remora.node': this.nodeId,
        ...(requestId !== undefined && { 'remora.request': requestTag(requestId) }),
        ...(queuedAt !== undefined && { 'remora.lock.queue_position': queuedAt }),
      };
      const tookMs = clock.monotonicMs() - sinceMs;
      spans.add({ traceId, spanId, parentSpanId, name: `remora ${kind}`, startMs, tookMs, attributes, error });
    };
  }
}
