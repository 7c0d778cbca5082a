import { type ErrorCode, ServiceError, toServiceError } from '@remora/base';
import {
  type CallHandle,
  type Command,
  type CommandResult,
  type Done,
  type Method,
  type PipeCommand,
  type PipeQuery,
  type PipeReply,
  pipeCommand,
  pipeQuery,
  type Query,
  type QueryResult,
  type ReconnectingChannel,
} from '@remora/protocol';
import type { ClientPorts } from '../ports.ts';
import { onAbort } from './abort.ts';
import type { Gateways } from './gateways.ts';
import { clientClosed, isNoAnswer } from './request-errors.ts';
import { pauseCeilingMs, type RetryPolicy } from './retry.ts';

/** Longest time that a gateway takes for one request. */
const REQUEST_TIMEOUT_MAX_MS = 60_000;
/** The gateway answers by the time-out; this is how much later its answer may arrive. */
export const ANSWER_GRACE_MS = 250;

/** What a gateway, or the way there, says of an attempt: nothing of those before it. */
const SAID_AT_THE_DOOR: ReadonlySet<ErrorCode> = new Set([
  'WRONG_CLUSTER',
  'NODE_CONFLICT',
  'UNIMPLEMENTED',
  'REQUEST_TOO_LARGE',
  'TOO_MANY_OPERATIONS',
  'INTERNAL',
]);

/** A command under way, and how that goes. */
export interface SentCommand extends CallHandle {
  /** How often it was sent. */
  readonly attempts: number;
  /** The gateway to which it was sent last; empty before. */
  readonly gateway: string;
}

export interface SendOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface CommandOptions extends SendOptions {
  /** For a blocking acquire: its wait in the queue (0: unlimited), and how long to wait for the answer to this try. */
  readonly queue?: { readonly waitMs: number; readonly answerMs: number };
  /**
   * What takes something back is sent until it is answered or its time is over, however often other requests are
   * (`RetryOptions.attempts`): what comes after it relies on its not being applied later (owner.ts, W1).
   */
  readonly untilAnswered?: boolean;
}

/** What an operation needs of the requester that begins it. */
export interface OperationPort {
  readonly ports: Pick<ClientPorts, 'clock' | 'random'>;
  readonly gateways: Gateways;
  readonly retry: RetryPolicy;
  readonly closed: boolean;
  /** The ranges' time at a moment of the monotonic clock; undefined before any range has told it. */
  rangeTimeAt(monotonicMs: number): number | undefined;
  /** Takes the ranges' time and the term from a reply. */
  learn(reply: PipeReply<unknown>): void;
}

/**
 * One request on its way to its answer, through whichever gateways that takes (R2 and R3 of `requester.ts`).
 *
 * A client begins them by the hundred thousand per second: whatever an attempt needs is a field of the one object.
 */
export abstract class Operation<Request, Reply> implements SentCommand {
  protected readonly requester: OperationPort;
  protected readonly options: CommandOptions;
  /** On the monotonic clock. */
  readonly endsMs: number;
  readonly #method: Method<Request, Reply>;
  readonly #done: Done<Reply>;
  #call: CallHandle | undefined;
  #channel: ReconnectingChannel | undefined;
  #attempts = 0;
  #failures = 0;
  #maybeApplied = false;
  /** That the server is over a limit, if that is how the last attempt failed: it says more than "no answer". */
  #overLimit: ServiceError | undefined;
  /** How the last attempt failed. */
  #lastFailure: ServiceError | undefined;
  #over = false;
  readonly #forgetSignal: (() => void) | undefined;

  constructor(requester: OperationPort, method: Method<Request, Reply>, options: CommandOptions, done: Done<Reply>) {
    this.requester = requester;
    this.#method = method;
    this.options = options;
    this.#done = done;
    this.endsMs = requester.ports.clock.monotonicMs() + options.timeoutMs;
    const { signal } = options;
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.#aborted(signal));
  }

  /** What a gateway is asked that is to answer within `timeoutMs`. */
  protected abstract request(timeoutMs: number): Request;

  /** What the client learns from an answer, whoever asked. */
  protected abstract learn(reply: Reply): void;

  /** Whether it may have changed something although no answer came. */
  protected abstract readonly changes: boolean;

  get attempts(): number {
    return this.#attempts;
  }

  /** It has ended, or nobody waits for it any more. */
  get over(): boolean {
    return this.#over;
  }

  get gateway(): string {
    return this.#channel === undefined ? '' : this.requester.gateways.addressOf(this.#channel);
  }

  /** `remainingMs`: of its time-out; all of it when it begins as soon as it is made. */
  start(remainingMs = this.options.timeoutMs): void {
    const { signal } = this.options;
    if (signal?.aborted) this.#aborted(signal);
    else this.#attempt(remainingMs);
  }

  fail(error: ServiceError): void {
    this.#finish(error, undefined);
  }

  /**
   * The time is over, and a question that had to be answered before this one was not. How long that question had is no time
   * that the caller named: only what kept it from an answer is told.
   */
  unanswered(error: ServiceError | undefined): void {
    const reason = error?.code === 'DEADLINE_EXCEEDED' ? error.cause : error;
    this.#lastFailure = reason instanceof ServiceError ? reason : undefined;
    this.#timedOut(this.#lastFailure?.retry === 'later' ? this.#lastFailure : undefined);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#forgetSignal?.();
    this.#call?.cancel();
  }

  get remainingMs(): number {
    return this.endsMs - this.requester.ports.clock.monotonicMs();
  }

  #attempt(remainingMs: number): void {
    if (this.#over) return;
    if (this.requester.closed) return this.#timedOut(clientClosed());
    if (remainingMs <= 0) return this.#timedOut(this.#overLimit);
    const { channel } = this.requester.gateways;
    this.#channel = channel;
    this.#attempts++;
    const timeoutMs = Math.min(remainingMs, REQUEST_TIMEOUT_MAX_MS);
    const answerMs = this.options.queue?.answerMs;
    const options = { timeoutMs: answerMs ?? timeoutMs + ANSWER_GRACE_MS, movable: answerMs === undefined };
    try {
      this.#call = channel.call(this.#method, this.request(timeoutMs), options, (error, reply) => {
        if (this.#over) return;
        if (error !== undefined) return this.#failed(channel, error);
        this.requester.gateways.served(channel);
        this.learn(reply as Reply);
        this.#finish(undefined, reply);
      });
    } catch (error) {
      if (this.#over) throw error;
      // It cannot be said to a gateway. Whoever asked is told so, though it may be a timer or a frame that began the attempt:
      // of this attempt only, as an earlier one may have been applied (R2).
      if (this.#isUnknown) this.#timedOut(toServiceError(error));
      else this.#finish(toServiceError(error), undefined);
    }
  }

  #failed(channel: ReconnectingChannel, error: ServiceError): void {
    this.#failures++;
    this.#lastFailure = error;
    const { gateways } = this.requester;
    // A blocking acquire is asked again now and then without anybody's fault.
    if (error.details?.mute === true) gateways.failed(channel, true);
    else if (isNoAnswer(error) && this.options.queue === undefined) gateways.doubt(channel);
    else gateways.failed(channel);
    if (error.code === 'UNKNOWN_OUTCOME') this.#maybeApplied = true;
    const before = this.#overLimit;
    this.#overLimit = error.retry === 'later' ? error : undefined;
    // Of an acquire that is queued: under this id it would be told so for ever, also when its turn has come (acquire.ts A4).
    if (error.details?.queued === true) return this.#timedOut(error);
    if (error.code === 'DEADLINE_EXCEEDED') return this.#timedOut(before ?? error);
    const isAnswer = error.retry === 'no' && !(this.#isUnknown && isOfThisAttempt(error)); // R2
    if (isAnswer) return this.#finish(error, undefined);
    const { remainingMs } = this;
    if (remainingMs <= 0 || this.#attempts >= this.attemptsMax) return this.#timedOut(error);
    const pauseMs = Math.min(remainingMs, this.#pauseMs(channel, error));
    this.requester.ports.clock.setTimer(pauseMs, () => this.#attempt(this.remainingMs));
  }

  /**
   * Another gateway is asked at once, one round of them; then with growing pauses. A server that is over a limit is
   * always given a pause, from the first time on no shorter than it asks for.
   */
  #pauseMs(failed: ReconnectingChannel, error: ServiceError): number {
    const { gateways, ports, retry } = this.requester;
    const overLimit = error.retry === 'later';
    if (!overLimit && gateways.channel !== failed && this.#failures < gateways.count) return 0;
    const askedMs = overLimit ? Math.min(retry.maxMs, retryAfterMs(error)) : 0;
    const ceilingMs = Math.max(pauseCeilingMs(retry, this.#failures), 2 * askedMs);
    return ceilingMs / 2 + ports.random.int(Math.ceil(ceilingMs / 2));
  }

  /** How often it is sent at most. */
  get attemptsMax(): number {
    return this.options.untilAnswered ? Number.POSITIVE_INFINITY : this.requester.retry.attemptsMax;
  }

  /** R2. */
  get #isUnknown(): boolean {
    return this.#maybeApplied && this.changes;
  }

  #timedOut(cause: ServiceError | undefined): void {
    if (this.#isUnknown) {
      const message = 'the answer was lost: the command may or may not have been applied';
      return this.#finish(new ServiceError('UNKNOWN_OUTCOME', message, { cause }), undefined);
    }
    if (cause !== undefined && cause.code !== 'UNKNOWN_OUTCOME') return this.#finish(cause, undefined);
    const why = this.#lastFailure === undefined ? '' : `: ${this.#lastFailure.message}`;
    const message = `no answer within ${Math.round(this.options.timeoutMs)} ms${why}`;
    this.#finish(new ServiceError('DEADLINE_EXCEEDED', message, { cause: cause ?? this.#lastFailure }), undefined);
  }

  #aborted(signal: AbortSignal): void {
    if (this.#over) return;
    this.#call?.cancel();
    const message = 'the caller aborted';
    this.#finish(new ServiceError('CANCELED', message, { cause: signal.reason }), undefined);
  }

  #finish(error: ServiceError | undefined, reply: Reply | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#forgetSignal?.();
    this.#done(error, reply);
  }
}

/** R1. */
export class CommandOperation extends Operation<PipeCommand, PipeReply<CommandResult>> {
  protected readonly changes = true;
  readonly #command: Command;
  readonly #requestId: string;
  /** In range time; fixed by the first attempt. */
  #deadlineMs: number | undefined;

  constructor(
    requester: OperationPort,
    command: Command,
    { requestId, options }: { readonly requestId: string; readonly options: CommandOptions },
    done: Done<PipeReply<CommandResult>>,
  ) {
    super(requester, pipeCommand, options, done);
    this.#command = command;
    this.#requestId = requestId;
  }

  protected request(timeoutMs: number): PipeCommand {
    this.#deadlineMs ??= this.requester.rangeTimeAt(this.endsMs);
    return {
      command: this.#command,
      requestId: this.#requestId,
      timeoutMs,
      deadlineMs: this.#deadlineMs,
      waitMs: this.options.queue?.waitMs,
    };
  }

  protected learn(reply: PipeReply<CommandResult>): void {
    this.requester.learn(reply);
  }
}

export class QueryOperation extends Operation<PipeQuery, PipeReply<QueryResult>> {
  protected readonly changes = false;
  readonly #query: Query;

  constructor(requester: OperationPort, query: Query, options: SendOptions, done: Done<PipeReply<QueryResult>>) {
    super(requester, pipeQuery, options, done);
    this.#query = query;
  }

  protected request(timeoutMs: number): PipeQuery {
    return { query: this.#query, timeoutMs };
  }

  protected learn(reply: PipeReply<QueryResult>): void {
    this.requester.learn(reply);
  }
}

/** A question that is the same at each attempt, and whose answer says nothing but what was asked. */
export class PlainOperation<Request, Reply> extends Operation<Request, Reply> {
  protected readonly changes = false;
  readonly #request: Request;

  constructor(
    requester: OperationPort,
    method: Method<Request, Reply>,
    request: Request,
    ending: { readonly options: SendOptions; readonly done: Done<Reply> },
  ) {
    super(requester, method, ending.options, ending.done);
    this.#request = request;
  }

  protected request(): Request {
    return this.#request;
  }

  protected learn(): void {}
}

/** How long the server asks to be left alone. */
function retryAfterMs({ details }: ServiceError): number {
  const asked = details?.retryAfterMs;
  return typeof asked === 'number' && asked > 0 ? asked : 0;
}

/** It says nothing of earlier attempts: nobody remembers it under the id of the request. */
function isOfThisAttempt({ code, details }: ServiceError): boolean {
  return SAID_AT_THE_DOOR.has(code) || details?.unremembered === true;
}
