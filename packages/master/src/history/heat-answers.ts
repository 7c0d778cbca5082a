import { binaryString, type Clock, ServiceError } from '@remora/base';
import type { Done, HeatReply, HeatRequest } from '@remora/protocol';
import type { ClusterHistory } from './cluster-history.ts';
import { heatQuery } from './heat-query.ts';

/** Further requests are refused. */
const WAITING_MAX = 16;
/** Answers of the present minute that are kept, of at most 0.8 MB each. */
const ANSWERS_MAX = 4;

export interface HeatAnswersDeps {
  readonly clock: Pick<Clock, 'setImmediate' | 'wallMs'>;
  readonly history: ClusterHistory;
}

interface Waiting {
  readonly key: string;
  readonly request: HeatRequest;
  readonly done: Done<HeatReply>;
}

/**
 * Answers queries of the load by key.
 *
 * HA1. One query is worked on at a time, by turns of the event loop (heat-query.ts HQ2). Others wait.
 * HA2. Consoles that show the same ask the same. So a query gets the answer of an equal one, if it asks about the same
 *      minutes in the same term.
 */
export class HeatAnswers {
  readonly #deps: HeatAnswersDeps;
  readonly #answers = new Map<string, HeatReply>();
  #waiting: Waiting[] = [];
  #isWorking = false;

  constructor(deps: HeatAnswersDeps) {
    this.#deps = deps;
  }

  answer(request: HeatRequest, done: Done<HeatReply>): void {
    const { clock, history } = this.#deps;
    const key = keyOf(request, history.term, history.span(request.minutes, clock.wallMs()));
    const known = this.#answers.get(key);
    if (known !== undefined) return done(undefined, known);
    if (this.#waiting.length >= WAITING_MAX) return done(tooMany(), undefined);
    this.#waiting.push({ key, request, done });
    if (!this.#isWorking) this.#next();
  }

  /** HA1. */
  #next(): void {
    const { clock, history } = this.#deps;
    const [first] = this.#waiting;
    this.#isWorking = first !== undefined;
    if (first === undefined) return;
    // The minute may have changed while it waited; the term also while it is worked on.
    const { request } = first;
    const span = history.span(request.minutes, clock.wallMs());
    const key = keyOf(request, history.term, span);
    const turns = heatQuery((minute) => history.heat(minute), span, request);
    const turn = (): void => {
      const { done, value } = turns.next();
      if (done !== true) return clock.setImmediate(turn);
      const isTrue = key === keyOf(request, history.term, span);
      if (isTrue) this.#keep(key, value);
      this.#tell(first.key, isTrue ? value : lost());
      this.#next();
    };
    clock.setImmediate(turn);
  }

  #keep(key: string, answer: HeatReply): void {
    this.#answers.set(key, answer);
    const [oldest] = this.#answers.keys();
    if (oldest !== undefined && this.#answers.size > ANSWERS_MAX) this.#answers.delete(oldest);
  }

  /** HA2. */
  #tell(key: string, answer: HeatReply | ServiceError): void {
    const told = this.#waiting.filter((each) => each.key === key);
    this.#waiting = this.#waiting.filter((each) => each.key !== key);
    for (const { done } of told) {
      if (answer instanceof ServiceError) done(answer, undefined);
      else done(undefined, answer);
    }
  }
}

function keyOf(
  { columns, measure, start, end }: HeatRequest,
  term: number,
  { first, count }: { readonly first: number; readonly count: number },
): string {
  return JSON.stringify([term, first, count, columns, measure, binaryString(start), binaryString(end)]);
}

/** The caller repeats it, at the new leader. */
function lost(): ServiceError {
  return new ServiceError('UNAVAILABLE', "the masters' leader changed before the load by key was put together");
}

function tooMany(): ServiceError {
  const message = `${WAITING_MAX} requests for the load by key wait at the masters' leader, which is its limit; try again later`;
  return new ServiceError('RESOURCE_EXHAUSTED', message, { details: { retryAfterMs: 1_000 } });
}
