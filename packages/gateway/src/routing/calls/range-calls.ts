import { type Clock, ServiceError, type Span, sleep } from '@remora/base';
import type { Command, Query, RangeReply } from '@remora/protocol';
import type { Route } from '../routes/route-map.ts';
import type { Routes } from '../routes/routes.ts';

export type AskDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

/** What a command is applied once by; `deadlineMs` is in range time, and reckoned from the time-out when absent. */
export interface CommandIdentity {
  readonly requestId: string;
  readonly deadlineMs: number | undefined;
}

/** Makes a command, once, when it is known by what time of its range it has to be applied, and what that is now. */
export type BuildCommand = (deadlineMs: number, rangeTimeMs: number) => Command;

export interface RangeCallsDeps {
  readonly routes: Routes;
  readonly clock: Clock;
  /** Asks the range that has all keys of the span; STALE_EPOCH when there is none. Gives what takes the question back. */
  readonly ask: (query: Query, span: Span, timeoutMs: number, done: AskDone) => () => void;
  /** The same with a command. */
  readonly execute: (
    build: BuildCommand,
    span: Span,
    options: CommandIdentity & { readonly timeoutMs: number },
    done: AskDone,
  ) => () => void;
}

/** While the range of some key is not known, or is not what it was, the routes are looked at again after so long. */
const ROUTES_PAUSE_MS = 10;

/** What one request asks of several ranges, as promises that end with it: by its signal, and at `endsMs`. */
export class RangeCalls {
  readonly signal: AbortSignal;
  readonly #deps: RangeCallsDeps;
  readonly #endsMs: number;

  constructor(deps: RangeCallsDeps, signal: AbortSignal, endsMs: number) {
    this.#deps = deps;
    this.signal = signal;
    this.#endsMs = endsMs;
  }

  /** The parts of a span by ranges, once they are all known. */
  async routesOf(span: Span): Promise<readonly Route[]> {
    for (;;) {
      const routes = this.#deps.routes.covering(span);
      if (routes !== undefined) return routes;
      this.#deps.routes.doubt();
      await this.pause();
    }
  }

  /** For a moment, in which what is known of ranges may get better. */
  pause(ms = ROUTES_PAUSE_MS): Promise<void> {
    return sleep(this.#deps.clock, ms, this.signal);
  }

  /** Waits for something that goes on by itself, as long as the request does. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this;
    // It goes on, and may fail when nobody waits any more: a rejection that nobody takes would end the process.
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

  /** Rejects with STALE_EPOCH when no range has all keys of the span. */
  ask(query: Query, span: Span, timeoutMaxMs?: number): Promise<RangeReply> {
    return this.#call(timeoutMaxMs, (timeoutMs, done) => this.#deps.ask(query, span, timeoutMs, done));
  }

  /** Rejects with STALE_EPOCH when no range has all keys of the span: then none of them applied it. */
  execute(build: BuildCommand, span: Span, identity: CommandIdentity): Promise<RangeReply> {
    return this.#call(undefined, (timeoutMs, done) =>
      this.#deps.execute(build, span, { ...identity, timeoutMs }, done),
    );
  }

  /**
   * As `execute`, but the signal does not end it once it has begun. It ends by its own time-out, at the end of the request, and
   * only then it is known whether the command may have been applied: it may have waited for a leader all the time.
   */
  executeToEnd(build: BuildCommand, span: Span, identity: CommandIdentity): Promise<RangeReply> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    const timeoutMs = this.#leftMs();
    return new Promise((resolve, reject) => {
      this.#deps.execute(build, span, { ...identity, timeoutMs }, (error, reply) => {
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
