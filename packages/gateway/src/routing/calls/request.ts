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
import type { CallHandle, RangeDescriptor, RangeInfo, RangeReply, RangeRequest, RpcDialer } from '@remora/protocol';
import {
  COMMAND_DEADLINE_MAX_MS,
  currentRanges,
  rangeExecute,
  rangeInfo,
  requestTag,
  staleAuthDetails,
  staleEpoch,
} from '@remora/protocol';
import type { Clearance } from '../../authorisation/clearance.ts';
import type { LeaderSearch } from '../routes/leader-search.ts';
import type { Routes } from '../routes/routes.ts';
import type { BackendInFlight } from './in-flight.ts';
import type { RequestMeter } from './request-meter.ts';
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
  readonly meter?: Pick<RequestMeter, 'slowMs' | 'weight' | 'ended' | 'slow'> | undefined;
}

export interface RoutedRequest {
  /** One of its keys: the request goes to the range that has it. Not read while one range has all keys. */
  readonly key: Bytes;
  /**
   * Returns the smallest span with all of its keys if it has more than one. Called only while there are several ranges.
   */
  readonly span?: () => Span | undefined;
  /**
   * Called when the range's time is known: `deadlineMs` is in that time, 0 for queries; `nowMs` is the range's time
   * now.
   */
  readonly build: (deadlineMs: number, nowMs: number) => RangeRequest['body'];
  /** Whether `build` reads `nowMs`. Otherwise a request with a fixed deadline is sent without the range's time. */
  readonly needsTime?: boolean;
  readonly command: boolean;
  readonly requestId: string;
  readonly timeoutMs: number;
  /** In range time, fixed by the caller; undefined: computed from `timeoutMs`. */
  readonly deadlineMs: number | undefined;
  /** How long the first attempt may take; a query that waits at the leader sets a longer time. */
  readonly attemptMs: number;
  readonly clearance: Clearance;
  /** The leader answers when something happens, so an attempt without an answer is no reason to doubt the leader. */
  readonly awaits: boolean;
}

/** Takes the end of a request: either an error or a reply, once, and neither after a cancel. */
export interface RequestCompletion {
  completed(error: ServiceError | undefined, reply: RangeReply | undefined): void;
}

const RETRY_MIN_MS = 10;
const RETRY_MAX_MS = 100;
const ATTEMPT_MAX_MS = 5_000;
const INFO_TIMEOUT_MS = 500;
/** So many attempts follow an answer without a pause; later ones pause, as two replicas may name each other in turn. */
const PROMPT_ATTEMPTS = 3;

/**
 * One request, from the first attempt to its completion. Read from top to bottom: `start`, `#attempt`, then `#search`
 * (no leader is known) or `#askTime` (the range's time is not known), `#send`, `#answered`, and `#finish`.
 *
 * Q1. Every attempt of a command carries the same request id and the same deadline, so the range applies it once.
 * Q2. Once an attempt may have reached a leader, the request never ends as "failed": it ends with the outcome that a
 *     range returned for this request id, or as UNKNOWN_OUTCOME. A node that refuses an attempt before executing it
 *     (full queues, a node that does not serve) says nothing about earlier attempts. After a split both parts know the
 *     outcome.
 * Q3. It ends by its time-out.
 * Q4. No range executes a request with keys in several ranges: it ends with STALE_EPOCH, and its caller splits it up.
 *     An earlier attempt of this request may have been applied while one range had all of its keys; the range of any of
 *     its keys remembers that. So that range is asked first. If it remembers nothing, nothing was applied, and nothing
 *     will be: an attempt that is still in flight carries an old epoch, or keys outside of the range's bounds.
 * Q5. A range may know newer users and roles than those by which the request was allowed. It has not executed this
 *      attempt, and the whole request is decided about again. If it is refused by then, although an earlier attempt may
 *      have been applied, its outcome is unknown, not refused (Q2).
 */
export class RoutedCall implements Awaited {
  readonly #deps: RequestDeps;
  readonly #request: RoutedRequest;
  readonly #completion: RequestCompletion;
  readonly #endsMs: number;
  /** How long it has waited for a leader. */
  #searchedMs = 0;
  /** When the latest attempt was sent, if it is not the first. */
  #sentMs = 0;
  /** An attempt took unusually long (`SlowAnswers`). */
  #wasSlow = false;
  #deadlineMs: number | undefined;
  #body: RangeRequest['body'] | undefined;
  #attempts = 0;
  #maybeApplied = false;
  #finished = false;
  /** The latest call, for `cancel`; undefined if it was answered before it returned. */
  #call: CallHandle | undefined;
  #calls = 0;
  /** The number of the latest call that is over. Calls end in their order, except for cancelled ones. */
  #endedCall = 0;
  /** The node and the range that the latest attempt was sent to. */
  #node = 0;
  #range: RangeDescriptor | undefined;
  /** The id of the latest attempt at `SlowAnswers`; 0: it is not watched there. */
  #slowId = 0;

  constructor(deps: RequestDeps, request: RoutedRequest, completion: RequestCompletion) {
    this.#deps = deps;
    this.#request = request;
    this.#completion = completion;
    this.#endsMs = deps.clock.monotonicMs() + request.timeoutMs;
    this.#deadlineMs = request.command ? request.deadlineMs : 0;
  }

  start(): void {
    this.#deps.inFlight.calls++;
    // It was just created, so all of its time is left.
    this.#attempt(this.#request.timeoutMs);
  }

  /** Ends the request without a completion. A command may be applied all the same. */
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
    assert(this.#range !== undefined, 'a request is watched from its first attempt on');
    return this.#range;
  }

  /** The time until its time-out, in ms. */
  get remainingMs(): number {
    return this.#endsMs - this.#deps.clock.monotonicMs();
  }

  /** Q2. The node that has the latest attempt does not lead any more, and has not answered. */
  moved(): void {
    if (this.#finished) return;
    this.#slowId = 0;
    this.#call?.cancel();
    this.#call = undefined;
    this.#attempts++;
    this.#maybeApplied ||= this.#request.command;
    this.#attempt();
  }

  #attempt(remainingMs = this.remainingMs): void {
    if (this.#finished) return;
    if (remainingMs <= 0) return this.#timedOut();
    const range = this.#deps.routes.whole ?? this.#deps.routes.find(this.#request.key);
    if (range === undefined) {
      this.#deps.routes.requestRefresh();
      return this.#retry(undefined);
    }
    if (!this.#maybeApplied && this.#spansRanges(range)) return this.#endAsStale();
    const node = this.#deps.routes.leader(range.rangeId);
    if (node === 0) return this.#search(range);
    const timeMs = this.#wantsTime() ? this.#deps.routes.timeMs(range.rangeId) : 0;
    if (timeMs === undefined) return this.#askTime(range.rangeId, node);
    this.#deadlineMs ??= timeMs + Math.ceil(remainingMs);
    this.#body ??= this.#request.build(this.#deadlineMs, timeMs);
    const { rangeId, epoch } = range;
    const { requestId, clearance } = this.#request;
    const deadlineMs = this.#deadlineMs;
    const request = { rangeId, epoch, requestId, deadlineMs, body: this.#body, authRevision: clearance.revision };
    this.#send(range, node, request, Math.min(this.#attemptMs(), Math.max(1, remainingMs)));
  }

  /** Waits until a node leads the range, or the time is over. */
  #search(range: RangeDescriptor): void {
    const { search, clock } = this.#deps;
    const number = ++this.#calls;
    const sinceMs = clock.monotonicMs();
    const timer = clock.setTimer(this.remainingMs, () => {
      stop();
      this.#ended(number);
      if (!this.#finished) this.#timedOut();
    });
    const stop = search.wait(range, this.#request.key, () => {
      timer.cancel();
      this.#searchedMs += clock.monotonicMs() - sinceMs;
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

  /** Asks the leader for the range's time, from which the deadline of a command is computed. */
  #askTime(rangeId: number, node: number): void {
    const timeoutMs = Math.min(INFO_TIMEOUT_MS, this.remainingMs);
    const number = ++this.#calls;
    const channel = this.#deps.dialer.channel(node);
    const call = channel.call(rangeInfo, { rangeId }, { timeoutMs }, (error, info) =>
      this.#timeAnswered(number, { rangeId, node }, error, info),
    );
    this.#began(number, call);
  }

  #timeAnswered(
    number: number,
    { rangeId, node }: { readonly rangeId: number; readonly node: number },
    error: ServiceError | undefined,
    info: RangeInfo | undefined,
  ): void {
    this.#ended(number);
    if (this.#finished) return;
    this.#attempts++;
    const { routes } = this.#deps;
    if (info?.leaderNode === node) {
      routes.learnInfo(info, node);
      return this.#attempt();
    }
    if (error !== undefined) routes.learnMoved(error);
    routes.forgetLeader(rangeId, node);
    this.#retry(error);
  }

  #wantsTime(): boolean {
    return this.#deadlineMs === undefined || (this.#request.needsTime === true && this.#body === undefined);
  }

  #send(range: RangeDescriptor, node: number, request: RangeRequest, timeoutMs: number): void {
    this.#range = range;
    this.#node = node;
    if (this.#attempts > 0) this.#sentMs = this.#deps.clock.monotonicMs();
    // Before the call, which may be answered before it returns.
    if (!this.#request.awaits) this.#slowId = this.#deps.slow.watch(this);
    const number = ++this.#calls;
    const channel = this.#deps.dialer.channel(node);
    const call = channel.call(rangeExecute, request, { timeoutMs }, (error, reply) =>
      this.#answered(number, error, reply),
    );
    this.#began(number, call);
  }

  /** The node that the latest attempt was sent to has answered, or the attempt took too long. */
  #answered(number: number, error: ServiceError | undefined, reply: RangeReply | undefined): void {
    this.#ended(number);
    if (this.#finished) return;
    this.#unwatch();
    this.#attempts++;
    const { range } = this;
    if (reply !== undefined) {
      this.#deps.routes.learnReply(range.rangeId, this.#node, reply);
      this.#finish(undefined, reply);
    } else if (error?.code === 'STALE_EPOCH') this.#rerouted(range, this.#node, error);
    else if (error !== undefined) this.#failed(range.rangeId, this.#node, error);
  }

  #unwatch(): void {
    if (this.#slowId === 0) return;
    if (this.#deps.slow.forget(this.#slowId)) this.#wasSlow = true;
    this.#slowId = 0;
  }

  /** A call inside of this process may be answered before it returns, and the next one may have begun by then. */
  #began(number: number, call: CallHandle): void {
    if (this.#endedCall < number) this.#call = call;
  }

  #ended(number: number): void {
    this.#endedCall = Math.max(this.#endedCall, number);
    if (number === this.#calls) this.#call = undefined;
  }

  /** Each attempt may take longer than the one before, so a slow leader is not sent attempts faster than it answers. */
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
        routes.forgetLeader(rangeId, node);
        if (typeof leader !== 'number' || leader === 0 || leader === node) return this.#retry(error);
        routes.learnLeader(rangeId, leader);
        return this.#attempts < PROMPT_ATTEMPTS ? this.#attempt() : this.#retry(error);
      }
      case 'STALE_AUTH':
        return this.#decideAgain(error);
      case 'UNKNOWN_OUTCOME':
        this.#maybeApplied ||= this.#request.command;
        if (!this.#request.awaits) routes.forgetLeader(rangeId, node);
        return this.#retry(error);
      case 'UNAVAILABLE':
        if (this.#retryWithNewDeadline(rangeId, error)) return;
        routes.forgetLeader(rangeId, node);
        return this.#retry(error);
      case 'RANGE_NOT_FOUND':
        routes.requestRefresh();
        routes.forgetLeader(rangeId, node);
        return this.#retry(error);
      case 'UNIMPLEMENTED':
      case 'WRONG_CLUSTER':
      case 'NODE_CONFLICT':
      case 'VERSION_REFUSED':
        // This node does not serve the range; another node does, or will.
        routes.forgetLeader(rangeId, node);
        return this.#retry(error);
      case 'RESOURCE_EXHAUSTED':
        // Q2. This attempt was refused before it was executed; an earlier one may have been applied.
        return this.#maybeApplied ? this.#retry(error) : this.#finish(error, undefined);
      case 'INTERNAL':
        return this.#maybeApplied ? this.#unknown(error) : this.#finish(error, undefined);
      case 'DEADLINE_EXCEEDED':
        if (this.#maybeApplied) return this.#unknown(error);
        if (this.#retryWithNewDeadline(rangeId, error)) return;
        return this.#finish(error, undefined);
      default:
        return this.#finish(error, undefined);
    }
  }

  /** Q5. */
  #decideAgain(error: ServiceError): void {
    const { revision, mayCommit } = staleAuthDetails(error);
    this.#maybeApplied ||= mayCommit;
    const number = ++this.#calls;
    const giveUp = this.#request.clearance.again(revision, this.remainingMs, (refusal) => {
      this.#ended(number);
      if (this.#finished) return;
      if (refusal === undefined) this.#attempt();
      else if (this.#maybeApplied) this.#unknown(refusal);
      else this.#finish(refusal, undefined);
    });
    this.#began(number, { cancel: giveUp });
  }

  /**
   * The keys may be in another range by now. The replica that says so usually names that range; one that lags cannot.
   */
  #rerouted({ rangeId, epoch }: RangeDescriptor, node: number, error: ServiceError): void {
    const { routes } = this.#deps;
    const current = currentRanges(error);
    const isNew = routes.learnRanges(current);
    const asked = current.find((range) => range.rangeId === rangeId);
    // Q4. The attempt carried the range's epoch, and the range remembers no earlier attempt.
    if (asked?.epoch.version === epoch.version && this.#spansRanges(asked)) return this.#endAsStale();
    // This or another request has learned a newer route. Each route is tried once, as epochs only grow.
    const now = routes.find(this.#request.key);
    if (now !== undefined && (now.rangeId !== rangeId || now.epoch.version !== epoch.version)) return this.#attempt();
    if (!isNew) {
      routes.requestRefresh();
      routes.forgetLeader(rangeId, node);
    }
    this.#retry(error);
  }

  #spansRanges(range: RangeDescriptor): boolean {
    if (this.#request.span === undefined || (range.start.length === 0 && range.end.length === 0)) return false;
    const span = this.#request.span();
    return span !== undefined && !spanCovers(range, span);
  }

  #endAsStale(): void {
    this.#finish(staleEpoch([]), undefined);
  }

  /**
   * Returns true if the range refused the command because this gateway was wrong about the range's time, and the
   * command was sent again with another deadline. That is allowed as nothing was applied (Q2), unless the client fixed
   * the deadline.
   */
  #retryWithNewDeadline(rangeId: number, error: ServiceError): boolean {
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

  #retry(error: ServiceError | undefined): void {
    const remainingMs = this.remainingMs;
    if (remainingMs <= 0) return this.#timedOut(error);
    if (this.#attempts <= PROMPT_ATTEMPTS && this.#leaderless()) return this.#attempt();
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#attempts, 8));
    const pauseMs = Math.min(remainingMs, ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2)));
    this.#deps.clock.setTimer(pauseMs, () => this.#attempt());
  }

  /** No leader is known. Then the next attempt needs no pause, as the search for a leader paces itself. */
  #leaderless(): boolean {
    const range = this.#deps.routes.find(this.#request.key);
    return range !== undefined && this.#deps.routes.leader(range.rangeId) === 0;
  }

  #timedOut(cause?: ServiceError): void {
    if (this.#maybeApplied) return this.#unknown(cause);
    const message = 'no leader of the range answered in time; the request was not applied, so it can be retried';
    this.#finish(new ServiceError('DEADLINE_EXCEEDED', message, { cause }), undefined);
  }

  #unknown(cause: ServiceError | undefined): void {
    const message = 'the answer was lost; the request may have been applied: retry with the same request id';
    this.#finish(new ServiceError('UNKNOWN_OUTCOME', message, { cause }), undefined);
  }

  #finish(error: ServiceError | undefined, reply: RangeReply | undefined): void {
    this.#end();
    if (!this.#request.awaits) this.#measure(error);
    this.#completion.completed(error, reply);
  }

  #measure(error: ServiceError | undefined): void {
    const { meter, clock } = this.#deps;
    if (meter === undefined) return;
    const isUsual = this.#attempts === 1 && !this.#wasSlow && this.#searchedMs === 0;
    const weight = isUsual ? meter.weight() : 1;
    if (weight === 0) return;
    const nowMs = clock.monotonicMs();
    const startMs = this.#endsMs - this.#request.timeoutMs;
    const tookMs = nowMs - startMs;
    meter.ended(this.#body, tookMs, weight);
    if (tookMs < meter.slowMs) return;
    meter.slow(this.#body, {
      tookMs,
      request: requestTag(this.#request.requestId),
      rangeId: this.#range?.rangeId ?? 0,
      node: this.#node,
      attempts: this.#attempts,
      searchedMs: this.#searchedMs,
      lastAttemptMs: this.#range === undefined ? 0 : nowMs - (this.#sentMs || startMs),
      code: error?.code ?? 'OK',
    });
  }

  #end(): void {
    this.#unwatch();
    if (!this.#finished) this.#deps.inFlight.calls--;
    this.#finished = true;
  }
}
