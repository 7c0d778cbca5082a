import { type Bytes, type Clock, ServiceError, type Span, type Timer } from '@remora/base';
import type { Query, QueryResult, RangeDescriptor, RangeReply, RangeRequest } from '@remora/protocol';
import type { Clearance } from '../../authorisation/clearance.ts';
import type { BackendDone, RequestTerms } from '../../backend.ts';
import { routingKey, routingSpan } from '../routes/request-keys.ts';
import type { Routes } from '../routes/routes.ts';
import type { ManyRanges } from './many-ranges.ts';
import type { NewestRevision } from './newest-revision.ts';
import { type RequestCompletion, type RequestDeps, RoutedCall, type RoutedRequest } from './request.ts';
import { AWAIT_MS } from './routed-acquire.ts';

export interface RoutedQueryDeps {
  readonly clock: Clock;
  readonly routes: Routes;
  readonly many: ManyRanges;
  readonly newest: NewestRevision;
  readonly calls: RequestDeps;
}

/** Longest time that one request may take. */
export const REQUEST_TIMEOUT_MAX_MS = 60_000;
export const ATTEMPT_MS = 1_000;

/**
 * One query, from the first attempt to the answer, over whichever ranges its keys are in. Read from top to bottom:
 * `start`, `#askMaster` (RQ1), `#askRange`, then `completed` by the `RoutedCall`, and `#askMany` if several ranges have
 * to answer.
 *
 * RQ1. The answer to a read that is not `serializable`, or to a query that wants a `current` answer, carries a revision
 *      that is at least that of every change acknowledged, and of every answer returned, before the query came, in any
 *      range. A range that counts its revisions by itself is the only one there ever was, and knows it. Otherwise the
 *      master is asked for its newest revision after the query came, and the range answers no earlier than that
 *      (`notBefore`). Concurrent queries share one question (D1 of the revision drawer). A range that merges have made
 *      the only one again is no exception: it may not have the newest revision that an answer carried, as not every
 *      revision is a change.
 * RQ2. The range may have been split since the gateway learned of it. Its answer shows that, and the query starts
 *      again.
 * RQ3. It ends by its time-out, also while the master does not answer.
 */
export class RoutedQuery implements RequestCompletion {
  readonly #deps: RoutedQueryDeps;
  readonly #query: Query;
  readonly #done: BackendDone<QueryResult>;
  readonly #endsMs: number;
  readonly #isCurrent: boolean;
  readonly #clearance: Clearance;
  /** For a current answer: what the master returned after the query came; 0 before that. */
  #notBefore: number;
  /** The call to one range, from the first on. */
  #call: RoutedCall | undefined;
  /** Cancels the question to the master, or to several ranges. */
  #giveUp: (() => void) | undefined;

  constructor(
    deps: RoutedQueryDeps,
    query: Query,
    { options, clearance }: { readonly options: RequestTerms; readonly clearance: Clearance },
    done: BackendDone<QueryResult>,
  ) {
    this.#clearance = clearance;
    this.#deps = deps;
    this.#query = query;
    this.#done = done;
    this.#endsMs = deps.clock.monotonicMs() + options.timeoutMs;
    this.#isCurrent = options.current === true || isLinearizableRead(query);
    this.#notBefore = this.#isCurrent ? 0 : (options.notBefore ?? 0);
  }

  start(): void {
    if (this.#isCurrent && isNumbered(this.#range)) this.#askMaster();
    else this.#askRange();
  }

  cancel(): void {
    this.#giveUp?.();
    this.#call?.cancel();
  }

  /** RQ1, RQ3. */
  #askMaster(): void {
    let timer: Timer | undefined;
    let answered = false;
    const giveUp = this.#deps.newest.ask(this.#notBefore, (error, revision) => {
      answered = true;
      timer?.cancel();
      this.#masterAnswered(error, revision);
    });
    if (answered) return;
    timer = this.#deps.clock.setTimer(this.#remainingMs, () => {
      giveUp();
      this.#done(noMaster(), undefined);
    });
    this.#giveUp = () => {
      timer?.cancel();
      giveUp();
    };
  }

  #masterAnswered(error: ServiceError | undefined, revision: number | undefined): void {
    if (revision === undefined) return this.#done(error ?? noAnswer(), undefined);
    this.#giveUp = undefined;
    this.#notBefore = Math.max(1, this.#notBefore, revision); // every range has had revision 1
    this.#askRange();
  }

  #askRange(): void {
    const request = new RangeQuery(this.#query, this.#remainingMs, this.#notBefore, this.#clearance);
    this.#call = new RoutedCall(this.#deps.calls, request, this);
    this.#call.start();
  }

  completed(error: ServiceError | undefined, reply: RangeReply | undefined): void {
    const concernsMany = this.#concernsMany(error);
    if (!concernsMany && reply === undefined) return this.#done(error ?? noAnswer(), undefined);
    const isNumberedHere = concernsMany || isNumbered(this.#call?.range);
    if (this.#isCurrent && this.#notBefore === 0 && isNumberedHere) return this.#askMaster(); // RQ2
    if (concernsMany) this.#askMany();
    else this.#done(undefined, reply as RangeReply & { readonly result: QueryResult });
  }

  #askMany(): void {
    const terms = { notBefore: this.#notBefore, timeoutMs: this.#remainingMs, clearance: this.#clearance };
    this.#giveUp = this.#deps.many.query(this.#query, terms, this.#done);
  }

  /**
   * Its keys are in several ranges, another range may have the revision that it names, or several have a part of the
   * answer.
   */
  #concernsMany(error: ServiceError | undefined): boolean {
    if (error === undefined) return belongsTogether(this.#query) && !isWhole(this.#range);
    return error.code === 'FUTURE_REVISION' ? isNumbered(this.#range) : error.code === 'STALE_EPOCH';
  }

  /** The range that has its key, as far as this gateway knows. */
  get #range(): RangeDescriptor | undefined {
    const { routes } = this.#deps;
    return routes.whole ?? routes.find(routingKey(this.#query));
  }

  get #remainingMs(): number {
    return this.#endsMs - this.#deps.clock.monotonicMs();
  }
}

/** A query on its way to one range. */
export class RangeQuery implements RoutedRequest {
  readonly command = false;
  readonly requestId = '';
  readonly deadlineMs = undefined;
  readonly timeoutMs: number;
  readonly attemptMs: number;
  readonly awaits: boolean;
  readonly #body: Extract<RangeRequest['body'], { kind: 'query' }>;
  /** The span of the keys to ask for, if that is a part of the query's span. */
  readonly #part: Span | undefined;

  readonly clearance: Clearance;

  constructor(query: Query, timeoutMs: number, notBefore: number, clearance: Clearance, part?: Span) {
    this.clearance = clearance;
    this.timeoutMs = Math.min(timeoutMs, REQUEST_TIMEOUT_MAX_MS);
    this.awaits = awaitsSomething(query);
    this.attemptMs = this.awaits ? AWAIT_MS : ATTEMPT_MS;
    this.#body = { kind: 'query', query, notBefore };
    this.#part = part;
  }

  get key(): Bytes {
    return this.#part?.start ?? routingKey(this.#body.query);
  }

  span(): Span | undefined {
    return this.#part ?? routingSpan(this.#body.query);
  }

  build(): RangeRequest['body'] {
    return this.#body;
  }
}

/** Whether the leader answers it when something happens, rather than at once. */
export function awaitsSomething({ type }: Query): boolean {
  return type === 'lockAwait' || type === 'grantEnd';
}

function isLinearizableRead(query: Query): boolean {
  return (query.type === 'range' || query.type === 'readTxn') && !query.serializable;
}

/** Whether one range has only a part of the answer. */
function belongsTogether(query: Query): boolean {
  return query.type === 'session' || (query.type === 'leaseTimeToLive' && query.keys);
}

/** Whether the master numbers its changes: there are several ranges, or there were. */
function isNumbered(range: RangeDescriptor | undefined): boolean {
  return range?.revisionSource === 'master';
}

/** Whether a range has all keys there are. */
function isWhole(range: RangeDescriptor | undefined): boolean {
  return range !== undefined && range.start.length === 0 && range.end.length === 0;
}

function noMaster(): ServiceError {
  const message = 'no leader of the masters returned a revision in time; a read over several ranges needs one';
  return new ServiceError('DEADLINE_EXCEEDED', message);
}

function noAnswer(): ServiceError {
  return new ServiceError('INTERNAL', 'the request ended with neither an answer nor an error');
}
