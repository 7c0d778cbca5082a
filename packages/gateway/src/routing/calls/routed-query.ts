import { type Bytes, type Clock, ServiceError, type Span, type Timer } from '@remora/base';
import type { Query, QueryResult, RangeDescriptor, RangeReply, RangeRequest } from '@remora/protocol';
import type { BackendDone, RequestOptions } from '../../backend.ts';
import { routingKey, routingSpan } from '../routes/request-keys.ts';
import type { Routes } from '../routes/routes.ts';
import { AWAIT_MS } from './acquires.ts';
import type { ManyRanges } from './many-ranges.ts';
import type { NewestRevision } from './newest-revision.ts';
import type { RequestDone, RoutedCall, RoutedRequest } from './request.ts';

export interface RoutedQueryDeps {
  readonly clock: Clock;
  readonly routes: Routes;
  readonly many: ManyRanges;
  readonly newest: NewestRevision;
  /** Starts a call to the range that has the keys; it ends with STALE_EPOCH when several ranges have them. */
  readonly call: (request: RoutedRequest, done: RequestDone) => RoutedCall;
}

/** Longest time that one request may take. */
export const REQUEST_TIMEOUT_MAX_MS = 60_000;
export const ATTEMPT_MS = 1_000;

/**
 * One query, from the first attempt to the answer, over whatever ranges its keys are in.
 *
 * RQ1. The answer to a read that is not `serializable`, or to a query that wants a `current` answer, carries a revision that is
 *      at least that of every change acknowledged, and of every answer given, before the query came, in whichever range. A
 *      range that counts its revisions by itself is the only one there ever was, and knows it. Otherwise the master is asked
 *      for its newest revision after the query came, and the range answers no earlier than that (`notBefore`). Concurrent
 *      queries share one question (D1 of the revision drawer). A range that has become the only one again, by merges, is
 *      no exception: it may not have the newest revision that an answer carried, as not every revision is a change.
 * RQ2. The range may have been split since the gateway heard of it. Its answer shows that, and the query begins again.
 * RQ3. It ends by its time-out, also while the master does not answer.
 */
export class RoutedQuery {
  readonly #deps: RoutedQueryDeps;
  readonly #query: Query;
  readonly #done: BackendDone<QueryResult>;
  readonly #endsMs: number;
  readonly #isCurrent: boolean;
  /** Of a current answer: what the master gave after the query came; 0 before that. */
  #notBefore: number;
  /** Takes back what is under way. */
  #cancel: () => void = () => {};

  constructor(deps: RoutedQueryDeps, query: Query, options: RequestOptions, done: BackendDone<QueryResult>) {
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
    this.#cancel();
  }

  /** The range that is thought to have its key. */
  get #range(): RangeDescriptor | undefined {
    const { routes } = this.#deps;
    return routes.whole ?? routes.find(routingKey(this.#query));
  }

  /** RQ1, RQ3. */
  #askMaster(): void {
    let timer: Timer | undefined;
    let answered = false;
    const giveUp = this.#deps.newest.ask(this.#notBefore, (error, revision) => {
      answered = true;
      timer?.cancel();
      if (revision === undefined) return this.#done(error ?? noAnswer(), undefined);
      this.#notBefore = Math.max(1, this.#notBefore, revision); // every range has had revision 1
      this.#askRange();
    });
    if (answered) return;
    timer = this.#deps.clock.setTimer(this.#remainingMs, () => {
      giveUp();
      this.#done(noMaster(), undefined);
    });
    this.#cancel = () => {
      timer?.cancel();
      giveUp();
    };
  }

  #askRange(): void {
    const request = new RangeQuery(this.#query, this.#remainingMs, this.#notBefore);
    const call = this.#deps.call(request, (error, reply) => this.#answered(call, error, reply));
    this.#cancel = () => call.cancel();
    call.start();
  }

  #answered(call: RoutedCall, error: ServiceError | undefined, reply: RangeReply | undefined): void {
    const concernsMany = this.#concernsMany(error);
    if (!concernsMany && reply === undefined) return this.#done(error ?? noAnswer(), undefined);
    const isNumberedHere = concernsMany || isNumbered(call.range);
    if (this.#isCurrent && this.#notBefore === 0 && isNumberedHere) return this.#askMaster(); // RQ2
    if (concernsMany) this.#askMany();
    else this.#done(undefined, reply as RangeReply & { readonly result: QueryResult });
  }

  #askMany(): void {
    this.#cancel = this.#deps.many.query(this.#query, this.#notBefore, this.#remainingMs, this.#done);
  }

  /** Its keys are in several ranges, it names a revision that only another range may have, or others have more to say. */
  #concernsMany(error: ServiceError | undefined): boolean {
    if (error === undefined) return belongsTogether(this.#query) && !isWhole(this.#range);
    return error.code === 'FUTURE_REVISION' ? isNumbered(this.#range) : error.code === 'STALE_EPOCH';
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
  /** Where its keys are, if not where the query says: it is asked of a part of them. */
  readonly #part: Span | undefined;

  constructor(query: Query, timeoutMs: number, notBefore: number, part?: Span) {
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

/** Whether it is answered when something happens, rather than at once. */
export function awaitsSomething({ type }: Query): boolean {
  return type === 'lockAwait' || type === 'grantEnd';
}

function isLinearizableRead(query: Query): boolean {
  return (query.type === 'range' || query.type === 'readTxn') && !query.serializable;
}

/** Whether the range that is asked has only a part to say. */
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
  const message = 'no leader of the masters gave a revision in time; a read over several ranges needs one';
  return new ServiceError('DEADLINE_EXCEEDED', message);
}

function noAnswer(): ServiceError {
  return new ServiceError('INTERNAL', 'neither an answer nor an error');
}
