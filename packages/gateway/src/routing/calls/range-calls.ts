import { type Clock, ServiceError, type Span, sleep } from '@remora/base';
import type { Command, Query, RangeReply } from '@remora/protocol';
import type { Clearance } from '../../authorisation/clearance.ts';
import type { Route } from '../routes/route-map.ts';
import type { Routes } from '../routes/routes.ts';

export type AskDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

/**
 * Identifies a command, so that it is applied once. `deadlineMs` is in range time; undefined: computed from the
 * time-out.
 */
export interface CommandIdentity {
  readonly requestId: string;
  readonly deadlineMs: number | undefined;
}

/** Makes a command, once, when its deadline and the present time are known, both in the time of its range. */
export type BuildCommand = (deadlineMs: number, rangeTimeMs: number) => Command;

export interface CallTerms {
  readonly timeoutMs: number;
  readonly clearance: Clearance;
}

export interface RangeCallsDeps {
  readonly routes: Routes;
  readonly clock: Clock;
  /**
   * Asks the range that has all keys of the span; STALE_EPOCH if none has. Returns a function that cancels the query.
   */
  readonly ask: (query: Query, span: Span, terms: CallTerms, done: AskDone) => () => void;
  /** The same with a command. */
  readonly execute: (
    build: BuildCommand,
    span: Span,
    options: CommandIdentity & CallTerms,
    done: AskDone,
  ) => () => void;
}

/** Pause before the next look at the routes, while the range of some key is unknown or has changed. */
const ROUTES_PAUSE_MS = 10;

/** The calls of one request to several ranges, as promises. They reject when its signal aborts, and end by `endsMs`. */
export class RangeCalls {
  readonly signal: AbortSignal;
  readonly #deps: RangeCallsDeps;
  readonly #endsMs: number;
  readonly #clearance: Clearance;

  constructor(deps: RangeCallsDeps, signal: AbortSignal, endsMs: number, clearance: Clearance) {
    this.#deps = deps;
    this.signal = signal;
    this.#endsMs = endsMs;
    this.#clearance = clearance;
  }

  /** Resolves with the parts of a span by range, once all of them are known. */
  async routesOf(span: Span): Promise<readonly Route[]> {
    for (;;) {
      const routes = this.#deps.routes.covering(span);
      if (routes !== undefined) return routes;
      this.#deps.routes.requestRefresh();
      await this.pause();
    }
  }

  /** Waits a moment, in which this gateway may learn about ranges. */
  pause(ms = ROUTES_PAUSE_MS): Promise<void> {
    return sleep(this.#deps.clock, ms, this.signal);
  }

  /** Waits for work that does not end with the request; rejects when the request ends first. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this;
    // The work may fail after the request has ended: a rejection without a handler would end the process.
    work.catch(() => undefined);
    signal.throwIfAborted();
    let onAbort = (): void => {};
    const over = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([work, over]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Rejects with STALE_EPOCH if no range has all keys of the span. */
  ask(query: Query, span: Span, timeoutMaxMs?: number): Promise<RangeReply> {
    return this.#call(timeoutMaxMs, (timeoutMs, done) =>
      this.#deps.ask(query, span, { timeoutMs, clearance: this.#clearance }, done),
    );
  }

  /** Rejects with STALE_EPOCH if no range has all keys of the span: then no range has applied it. */
  execute(build: BuildCommand, span: Span, identity: CommandIdentity): Promise<RangeReply> {
    return this.#call(undefined, (timeoutMs, done) =>
      this.#deps.execute(build, span, { ...identity, timeoutMs, clearance: this.#clearance }, done),
    );
  }

  /**
   * Like `execute`, but the signal does not end it once it has started. It ends by its own time-out, at the end of the
   * request: only then is it known whether the command was sent, as it may have waited for a leader all the time.
   */
  executeToEnd(
    build: BuildCommand,
    span: Span,
    identity: CommandIdentity,
    clearance = this.#clearance,
  ): Promise<RangeReply> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    const timeoutMs = this.#leftMs();
    return new Promise((resolve, reject) => {
      this.#deps.execute(build, span, { ...identity, timeoutMs, clearance }, (error, reply) => {
        if (reply === undefined) reject(error ?? noAnswer());
        else resolve(reply);
      });
    });
  }

  #leftMs(): number {
    return this.#endsMs - this.#deps.clock.monotonicMs();
  }

  #call(
    timeoutMaxMs = Number.POSITIVE_INFINITY,
    begin: (timeoutMs: number, done: AskDone) => () => void,
  ): Promise<RangeReply> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const timeoutMs = Math.min(timeoutMaxMs, this.#leftMs());
      const onAbort = (): void => {
        cancel();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const cancel = begin(timeoutMs, (error, reply) => {
        signal.removeEventListener('abort', onAbort);
        if (reply === undefined) reject(error ?? noAnswer());
        else resolve(reply);
      });
    });
  }
}

function noAnswer(): ServiceError {
  return new ServiceError('INTERNAL', 'the request ended with neither an answer nor an error');
}
