import {
  assert,
  type Bytes,
  type Clock,
  type Logger,
  type Random,
  ServiceError,
  type Span,
  spanCovers,
} from '@remora/base';
import type { CallHandle, RangeDescriptor, RangeReply, RangeRequest, RpcDialer } from '@remora/protocol';
import { COMMAND_DEADLINE_MAX_MS, currentRanges, rangeExecute, rangeInfo, staleEpoch } from '@remora/protocol';
import type { LeaderSearch } from '../routes/leader-search.ts';
import type { Routes } from '../routes/routes.ts';
import type { BackendInFlight } from './in-flight.ts';
import type { Awaited, SlowAnswers } from './slow-answers.ts';

export interface RequestDeps {
  readonly dialer: RpcDialer;
  readonly routes: Routes;
  readonly search: LeaderSearch;
  readonly slow: SlowAnswers;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly inFlight: BackendInFlight;
}

export interface RoutedRequest {
  /** One of its keys: the request goes to the range that has it. Hardly looked at where one range has all of them. */
  readonly key: Bytes;
  /** The smallest span with all of its keys, when it has more than one. Asked for only where there are several ranges. */
  readonly span?: () => Span | undefined;
  /** Made once the range's time is known: `deadlineMs` is in that time, 0 for queries; `nowMs` is what it is now. */
  readonly build: (deadlineMs: number, nowMs: number) => RangeRequest['body'];
  /** Whether `build` looks at `nowMs`, which otherwise need not be known when the deadline is fixed. */
  readonly needsTime?: boolean;
  readonly command: boolean;
  readonly requestId: string;
  readonly timeoutMs: number;
  /** In range time, fixed by the caller; otherwise reckoned from `timeoutMs`. */
  readonly deadlineMs: number | undefined;
  /** How long one attempt may take before another is made; a query that waits at the server gives it longer. */
  readonly attemptMs: number;
  /** It is answered when something happens: that nothing did in an attempt's time says nothing against the leader. */
  readonly awaits: boolean;
}

export type RequestDone = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

const RETRY_MIN_MS = 10;
const RETRY_MAX_MS = 100;
const ATTEMPT_MAX_MS = 5_000;
const INFO_TIMEOUT_MS = 500;
/** Attempts that follow an answer at once; later ones pause, as replicas may name each other in turn. */
const PROMPT_ATTEMPTS = 3;

/**
 * One request on its way to a range's leader, from the first attempt to the answer.
 *
 * Q1. Every attempt of a command carries the same request id and the same deadline, so it is applied once.
 * Q2. Once an attempt may have reached a leader, the request never ends as "failed": only with the outcome that a
 *     range gave to this request id, or as UNKNOWN_OUTCOME. Refusals at the door (full queues, a node that does not
 *     serve) say nothing of earlier attempts. When the range is split meanwhile, the outcome is known to both parts.
 * Q3. It ends by its time-out.
 * Q4. What has keys in several ranges is executed by none of them: it ends with STALE_EPOCH, to be asked or executed
 *     otherwise. A command may have been applied while one range had all of its keys, by an earlier attempt of this
 *     request: the range of any of its keys remembers that. So that one is asked first, and if it does not, nothing was
 *     applied, nor will be: what is still on its way meets an epoch that has passed, or bounds that it exceeds.
 */
export class RoutedCall implements Awaited {
  readonly #deps: RequestDeps;
  readonly #request: RoutedRequest;
  readonly #done: RequestDone;
  readonly #endsMs: number;
  #deadlineMs: number | undefined;
  #body: RangeRequest['body'] | undefined;
  #attempts = 0;
  #maybeApplied = false;
  #finished = false;
  /** The latest call, for `cancel`; a call that was answered before it returned leaves none. */
  #call: CallHandle | undefined;
  #calls = 0;
  /** The number of the latest that is over; they are over in their order, but for those that were canceled. */
  #endedCall = 0;
  /** Whom the latest attempt asks, and which range. */
  #node = 0;
  #range: RangeDescriptor | undefined;
  /** By which the latest attempt is known there; 0: not at all. */
  #slowId = 0;

  constructor(deps: RequestDeps, request: RoutedRequest, done: RequestDone) {
    this.#deps = deps;
    this.#request = request;
    this.#done = done;
    this.#endsMs = deps.clock.monotonicMs() + request.timeoutMs;
    this.#deadlineMs = request.command ? request.deadlineMs : 0;
  }

  start(): void {
    this.#deps.inFlight.calls++;
    // As soon as it is made: its whole time is left.
    this.#attempt(this.#request.timeoutMs);
  }

  /** Nobody waits any more. */
  cancel(): void {
    this.#end();
    this.#call?.cancel();
  }

  get key(): Bytes {
    return this.#request.key;
  }

  get node(): number {
    return this.#node;
  }

  get range(): RangeDescriptor {
    assert(this.#range !== undefined, 'it is watched from its first attempt on');
    return this.#range;
  }

  /** Q2. The leader that has the request is none any more, and said nothing about it. */
  moved(): void {
    if (this.#finished) return;
    this.#slowId = 0;
    this.#call?.cancel();
    this.#call = undefined;
    this.#attempts++;
    this.#maybeApplied ||= this.#request.command;
    this.#attempt();
  }

  #end(): void {
    this.#awaitsNothing();
    if (!this.#finished) this.#deps.inFlight.calls--;
    this.#finished = true;
  }

  /** Of its time-out, in ms. */
  get remainingMs(): number {
    return this.#endsMs - this.#deps.clock.monotonicMs();
  }

  #attempt(remainingMs = this.remainingMs): void {
    if (this.#finished) return;
    if (remainingMs <= 0) return this.#timedOut();
    const range = this.#deps.routes.whole ?? this.#deps.routes.find(this.#request.key);
    if (range === undefined) {
      this.#deps.routes.doubt();
      return this.#again(undefined);
    }
    if (!this.#maybeApplied && this.#isApart(range)) return this.#apart();
    const node = this.#deps.routes.leader(range.rangeId);
    if (node === 0) return this.#search(range);
    const timeMs = this.#wantsTime() ? this.#deps.routes.timeMs(range.rangeId) : 0;
    if (timeMs === undefined) return this.#askTime(range, node);
    this.#deadlineMs ??= timeMs + Math.ceil(remainingMs);
    this.#body ??= this.#request.build(this.#deadlineMs, timeMs);
    const { rangeId, epoch } = range;
    const { requestId } = this.#request;
    const request = { rangeId, epoch, requestId, deadlineMs: this.#deadlineMs, body: this.#body };
    this.#send(range, node, request, Math.min(this.#attemptMs(), Math.max(1, remainingMs)));
  }

  /** Waits until somebody leads the range, or the time is over. */
  #search(range: RangeDescriptor): void {
    const { search, clock } = this.#deps;
    const number = ++this.#calls;
    const timer = clock.setTimer(this.remainingMs, () => {
      stop();
      this.#ended(number);
      if (!this.#finished) this.#timedOut();
    });
    const stop = search.wait(range, this.#request.key, () => {
      timer.cancel();
      this.#ended(number);
      this.#attempts++;
      this.#attempt();
    });
    this.#began(number, {
      cancel() {
        timer.cancel();
        stop();
      },
    });
  }

  /** Asks the leader for the range's time, which the deadline of a command is reckoned from. */
  #askTime(range: RangeDescriptor, node: number): void {
    const { routes, dialer } = this.#deps;
    const { rangeId } = range;
    const timeoutMs = Math.min(INFO_TIMEOUT_MS, this.remainingMs);
    const number = ++this.#calls;
    const call = dialer.channel(node).call(rangeInfo, { rangeId }, { timeoutMs }, (error, info) => {
      this.#ended(number);
      if (this.#finished) return;
      this.#attempts++;
      if (info?.leaderNode === node) {
        routes.learnInfo(info, node);
        return this.#attempt();
      }
      if (error !== undefined) routes.learnMoved(error);
      routes.distrust(rangeId, node);
      this.#again(error);
    });
    this.#began(number, call);
  }

  #wantsTime(): boolean {
    return this.#deadlineMs === undefined || (this.#request.needsTime === true && this.#body === undefined);
  }

  #send(range: RangeDescriptor, node: number, request: RangeRequest, timeoutMs: number): void {
    const { rangeId } = range;
    this.#range = range;
    this.#node = node;
    // Before the call, which may be answered within.
    if (!this.#request.awaits) this.#slowId = this.#deps.slow.watch(this);
    const number = ++this.#calls;
    const channel = this.#deps.dialer.channel(node);
    const call = channel.call(rangeExecute, request, { timeoutMs }, (error, reply) => {
      this.#ended(number);
      if (this.#finished) return;
      this.#awaitsNothing();
      this.#attempts++;
      if (reply !== undefined) {
        this.#deps.routes.learnReply(rangeId, node, reply);
        this.#finish(undefined, reply);
      } else if (error?.code === 'STALE_EPOCH') this.#rerouted(range, node, error);
      else if (error !== undefined) this.#failed(rangeId, node, error);
    });
    this.#began(number, call);
  }

  #awaitsNothing(): void {
    if (this.#slowId !== 0) this.#deps.slow.forget(this.#slowId);
    this.#slowId = 0;
  }

  /** A call of this process may be answered before it returns, and another one begun by then. */
  #began(number: number, call: CallHandle): void {
    if (this.#endedCall < number) this.#call = call;
  }

  #ended(number: number): void {
    this.#endedCall = Math.max(this.#endedCall, number);
    if (number === this.#calls) this.#call = undefined;
  }

  /** Each attempt may take longer than the one before: a slow leader is not asked faster than it can answer. */
  #attemptMs(): number {
    return Math.max(
      this.#request.attemptMs,
      Math.min(ATTEMPT_MAX_MS, this.#request.attemptMs * 2 ** Math.min(this.#attempts, 3)),
    );
  }

  #failed(rangeId: number, node: number, error: ServiceError): void {
    const { routes } = this.#deps;
    switch (error.code) {
      case 'NOT_LEADER': {
        const leader = error.details?.leaderNode;
        routes.distrust(rangeId, node);
        if (typeof leader !== 'number' || leader === 0 || leader === node) return this.#again(error);
        routes.learnLeader(rangeId, leader);
        return this.#attempts < PROMPT_ATTEMPTS ? this.#attempt() : this.#again(error);
      }
      case 'UNKNOWN_OUTCOME':
        this.#maybeApplied ||= this.#request.command;
        if (!this.#request.awaits) routes.distrust(rangeId, node);
        return this.#again(error);
      case 'UNAVAILABLE':
        if (this.#wrongTime(rangeId, error)) return;
        routes.distrust(rangeId, node);
        return this.#again(error);
      case 'RANGE_NOT_FOUND':
        routes.doubt();
        routes.distrust(rangeId, node);
        return this.#again(error);
      case 'UNIMPLEMENTED':
      case 'WRONG_CLUSTER':
      case 'NODE_CONFLICT':
        // This node does not serve the range; another one does, or will.
        routes.distrust(rangeId, node);
        return this.#again(error);
      case 'RESOURCE_EXHAUSTED':
        // Q2. The door is closed to this attempt; an earlier one may be inside.
        return this.#maybeApplied ? this.#again(error) : this.#finish(error, undefined);
      case 'INTERNAL':
        return this.#maybeApplied ? this.#unknown(error) : this.#finish(error, undefined);
      case 'DEADLINE_EXCEEDED':
        if (this.#maybeApplied) return this.#unknown(error);
        if (this.#wrongTime(rangeId, error)) return;
        return this.#finish(error, undefined);
      default:
        return this.#finish(error, undefined);
    }
  }

  /** The keys may be in another range by now: whoever says so mostly says which. A replica that lags does not know. */
  #rerouted({ rangeId, epoch }: RangeDescriptor, node: number, error: ServiceError): void {
    const { routes } = this.#deps;
    const current = currentRanges(error);
    const news = routes.learnRanges(current);
    const asked = current.find((range) => range.rangeId === rangeId);
    // Q4. It was asked by the epoch that it has, and does not remember.
    if (asked?.epoch.version === epoch.version && this.#isApart(asked)) return this.#apart();
    // There is another way to go by now, whoever learned it; each is taken once, as epochs only grow.
    const now = routes.find(this.#request.key);
    if (now !== undefined && (now.rangeId !== rangeId || now.epoch.version !== epoch.version)) return this.#attempt();
    if (!news) {
      routes.doubt();
      routes.distrust(rangeId, node);
    }
    this.#again(error);
  }

  #isApart(range: RangeDescriptor): boolean {
    if (this.#request.span === undefined || (range.start.length === 0 && range.end.length === 0)) return false;
    const span = this.#request.span();
    return span !== undefined && !spanCovers(range, span);
  }

  #apart(): void {
    this.#finish(staleEpoch([]), undefined);
  }

  /**
   * The range's time is not what this gateway took it for, and the command was refused for that. As nothing was
   * applied (Q2), it may be given another deadline, unless its client fixed it.
   */
  #wrongTime(rangeId: number, error: ServiceError): boolean {
    const timeMs = error.details?.rangeTimeMs;
    if (typeof timeMs !== 'number' || this.#deadlineMs === undefined) return false;
    this.#deps.routes.learnTime(rangeId, timeMs);
    const early =
      this.#deadlineMs - timeMs < this.remainingMs / 2 || this.#deadlineMs - timeMs > COMMAND_DEADLINE_MAX_MS;
    if (!early || this.#maybeApplied || this.#request.deadlineMs !== undefined || this.#attempts > 5) return false;
    this.#deadlineMs = undefined;
    this.#body = undefined;
    this.#attempt();
    return true;
  }

  #again(error: ServiceError | undefined): void {
    const remainingMs = this.remainingMs;
    if (remainingMs <= 0) return this.#timedOut(error);
    if (this.#attempts <= PROMPT_ATTEMPTS && this.#leaderless()) return this.#attempt();
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#attempts, 8));
    const pauseMs = Math.min(remainingMs, ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2)));
    this.#deps.clock.setTimer(pauseMs, () => this.#attempt());
  }

  /** Nobody is thought to lead: the search paces itself, and needs no pause before it. */
  #leaderless(): boolean {
    const range = this.#deps.routes.find(this.#request.key);
    return range !== undefined && this.#deps.routes.leader(range.rangeId) === 0;
  }

  #timedOut(cause?: ServiceError): void {
    if (this.#maybeApplied) return this.#unknown(cause);
    const message = 'no leader of the range answered in time; the request was not applied';
    this.#finish(new ServiceError('DEADLINE_EXCEEDED', message, { cause }), undefined);
  }

  #unknown(cause: ServiceError | undefined): void {
    const message =
      'the answer was lost: the request may or may not have been applied; retry under the same request id';
    this.#finish(new ServiceError('UNKNOWN_OUTCOME', message, { cause }), undefined);
  }

  #finish(error: ServiceError | undefined, reply: RangeReply | undefined): void {
    this.#end();
    this.#done(error, reply);
  }
}
