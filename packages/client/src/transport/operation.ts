import { type ErrorCode, ServiceError, toServiceError } from '@remora/base';
import {
  type CallHandle,
  type Command,
  type CommandResult,
  type Done,
  isFinalRefusal,
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
import type { ClientMetrics } from '../observe/client-metrics.ts';
import type { ClientPorts } from '../ports.ts';
import { onAbort } from './abort.ts';
import type { Gateways } from './gateways.ts';
import { clientClosed, isNoAnswer } from './request-errors.ts';
import { pauseCeilingMs, type RetryPolicy } from './retry.ts';

/** The longest time that a gateway accepts for one request. */
const REQUEST_TIMEOUT_MAX_MS = 60_000;
/** The gateway answers by the time-out; its answer may arrive this much later. */
export const ANSWER_GRACE_MS = 250;

/** Errors about this attempt only; they say nothing about earlier ones. */
const OF_ATTEMPT: ReadonlySet<ErrorCode> = new Set([
  'WRONG_CLUSTER',
  'NODE_CONFLICT',
  'VERSION_REFUSED',
  'UNIMPLEMENTED',
  'REQUEST_TOO_LARGE',
  'TOO_MANY_OPERATIONS',
  'INTERNAL',
  'UNAUTHENTICATED',
]);

/** A gateway that goes on refusing a connection that has logged in is believed then. */
const REFUSALS_MAX = 2;

/** A command in flight. */
export interface SentCommand extends CallHandle {
  /** How often it was sent. */
  readonly attempts: number;
  /** The gateway of the last attempt; empty before the first. */
  readonly gateway: string;
}

export interface SendOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface CommandOptions extends SendOptions {
  /**
   * For a blocking acquire: its wait in the queue (0: unlimited), and how long to wait for the answer to this attempt.
   */
  readonly queue?: { readonly waitMs: number; readonly answerMs: number };
  /**
   * Send it until it is answered or its time is over, whatever `RetryOptions.attempts` says. For releases and cancels:
   * the owner's next command relies on them not being applied later (owner.ts, W1).
   */
  readonly untilAnswered?: boolean;
}

/** What an operation needs of the requester that begins it. */
export interface OperationPort {
  readonly ports: Pick<ClientPorts, 'clock' | 'random'>;
  readonly gateways: Gateways;
  readonly retry: RetryPolicy;
  readonly closed: boolean;
  /** Whether the client has credentials: what a gateway refuses as UNAUTHENTICATED is sent again after a log-in. */
  readonly logsIn: boolean;
  /** Absent: nobody collects numbers. */
  readonly metrics?: ClientMetrics | undefined;
  /** The caller's trace context at this moment; absent: requests have none. */
  readonly traceContext?: (() => string | undefined) | undefined;
  /** The ranges' time at a moment of the monotonic clock; undefined before any range has told it. */
  rangeTimeAt(monotonicMs: number): number | undefined;
  /** Takes the ranges' time and the term from a reply. */
  learn(reply: PipeReply<unknown>): void;
}

/**
 * One request, sent to one gateway after another until it is answered (R2 and R3 of `requester.ts`).
 *
 * A client begins a hundred thousand of them a second, so an attempt allocates no object of its own: its state is in
 * fields here.
 */
abstract class Operation<Request, Reply> implements SentCommand {
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
  /** An attempt has reached a gateway, and its answer was lost. */
  protected maybeApplied = false;
  /** How often a gateway has refused it as UNAUTHENTICATED. */
  #refusals = 0;
  /** Set if the last attempt failed because the server is over a limit: that is a better reason than "no answer". */
  #overLimit: ServiceError | undefined;
  /** How the last attempt failed. */
  #lastFailure: ServiceError | undefined;
  #over = false;
  readonly #forgetSignal: (() => void) | undefined;
  /** The caller's trace context. */
  protected readonly trace: string | undefined;

  constructor(requester: OperationPort, method: Method<Request, Reply>, options: CommandOptions, done: Done<Reply>) {
    this.requester = requester;
    this.#method = method;
    this.options = options;
    this.#done = done;
    this.endsMs = requester.ports.clock.monotonicMs() + options.timeoutMs;
    this.trace = requester.traceContext?.();
    const { signal } = options;
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.#aborted(signal));
  }

  /** The request for a gateway, which has `timeoutMs` to answer. */
  protected abstract request(timeoutMs: number): Request;

  /** Takes from a reply what concerns the whole client. */
  protected abstract learn(reply: Reply): void;

  /** What is requested, for metrics (CM2). */
  protected abstract readonly kind: string;

  /** Whether the request may change something even if its answer is lost. */
  protected abstract readonly changes: boolean;

  get attempts(): number {
    return this.#attempts;
  }

  /** It has ended, or was canceled. */
  get over(): boolean {
    return this.#over;
  }

  get gateway(): string {
    return this.#channel === undefined ? '' : this.requester.gateways.addressOf(this.#channel);
  }

  /** `remainingMs`: how much of the time-out is left. */
  start(remainingMs = this.options.timeoutMs): void {
    const { signal } = this.options;
    if (signal?.aborted) this.#aborted(signal);
    else this.#attempt(remainingMs);
  }

  fail(error: ServiceError): void {
    this.#finish(error, undefined);
  }

  /**
   * The time is over, and another query that had to be answered first was not. The time limit of that query means
   * nothing to the caller, so only the cause of its failure is reported.
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
      // The request cannot be encoded. That is reported to the original caller, even if a timer or a frame began this
      // attempt. It concerns this attempt only: an earlier one may have been applied (R2).
      if (this.#isUnknown) this.#timedOut(toServiceError(error));
      else this.#finish(toServiceError(error), undefined);
    }
  }

  #failed(channel: ReconnectingChannel, error: ServiceError): void {
    this.#failures++;
    this.#lastFailure = error;
    const { gateways } = this.requester;
    // A blocking acquire is repeated periodically although nothing failed.
    if (error.details?.mute === true) gateways.failed(channel, true);
    else if (isNoAnswer(error) && this.options.queue === undefined) gateways.doubt(channel);
    else gateways.failed(channel);
    if (error.code === 'UNKNOWN_OUTCOME') this.maybeApplied = true;
    if (isFinalRefusal(error)) return this.#timedOut(error);
    if (this.#awaitsLogIn(error)) return this.#attempt(this.remainingMs);
    const before = this.#overLimit;
    this.#overLimit = error.retry === 'later' ? error : undefined;
    // A queued acquire would get this answer again under the same id, even after its turn has come (acquire.ts A4).
    if (error.details?.queued === true) return this.#timedOut(error);
    if (error.code === 'DEADLINE_EXCEEDED') return this.#timedOut(before ?? error);
    const isAnswer = error.retry === 'no' && !(this.#isUnknown && isOfThisAttempt(error)); // R2
    if (isAnswer) return this.#finish(error, undefined);
    const { remainingMs } = this;
    if (remainingMs <= 0 || this.#attempts >= this.attemptsMax) return this.#timedOut(error);
    const pauseMs = Math.min(remainingMs, this.#pauseMs(channel, error));
    this.requester.ports.clock.setTimer(pauseMs, () => this.#attempt(this.remainingMs));
  }

  /** The connection is logged in again, and the next attempt waits for that (log-ins.ts LI4). */
  #awaitsLogIn({ code }: ServiceError): boolean {
    return code === 'UNAUTHENTICATED' && this.requester.logsIn && this.#refusals++ < REFUSALS_MAX;
  }

  /**
   * The first round tries every gateway without a pause; after that the pauses grow. A server that is over a limit
   * always gets a pause, which is never shorter than it asks for.
   */
  #pauseMs(failed: ReconnectingChannel, error: ServiceError): number {
    const { gateways, ports, retry } = this.requester;
    const overLimit = error.retry === 'later';
    if (!overLimit && gateways.channel !== failed && this.#failures < gateways.count) return 0;
    const askedMs = overLimit ? Math.min(retry.maxMs, retryAfterMs(error)) : 0;
    const ceilingMs = Math.max(pauseCeilingMs(retry, this.#failures), 2 * askedMs);
    return ceilingMs / 2 + ports.random.int(Math.ceil(ceilingMs / 2));
  }

  /** The most attempts it makes. */
  get attemptsMax(): number {
    return this.options.untilAnswered ? Number.POSITIVE_INFINITY : this.requester.retry.attemptsMax;
  }

  /** R2. */
  get #isUnknown(): boolean {
    return this.maybeApplied && this.changes;
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

  #measure(metrics: ClientMetrics, error: ServiceError | undefined): void {
    const { kind } = this;
    metrics.count('remora_client_requests_total', { kind, code: error?.code ?? 'OK' });
    if (this.#attempts > 1) metrics.count('remora_client_request_retries_total', { kind });
    if (this.options.queue !== undefined) return; // It waits for others.
    const seconds = (this.requester.ports.clock.monotonicMs() - this.endsMs + this.options.timeoutMs) / 1_000;
    metrics.observe('remora_client_request_seconds', seconds, { kind });
  }

  #finish(error: ServiceError | undefined, reply: Reply | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#forgetSignal?.();
    if (this.requester.metrics !== undefined) this.#measure(this.requester.metrics, error);
    this.#done(error, reply);
  }
}

/** R1, R4. */
export class CommandOperation extends Operation<PipeCommand, PipeReply<CommandResult>> {
  protected readonly changes = true;
  readonly #command: Command;
  readonly #requestId: string;
  /** In range time; the first attempt sets it. */
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
      again: this.maybeApplied ? true : undefined, // R4
      trace: this.trace,
    };
  }

  protected get kind(): string {
    return this.#command.type;
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
    return { query: this.#query, timeoutMs, trace: this.trace };
  }

  protected get kind(): string {
    return this.#query.type;
  }

  protected learn(reply: PipeReply<QueryResult>): void {
    this.requester.learn(reply);
  }
}

/** A request that is the same at each attempt, and whose reply concerns only its caller. */
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

  protected get kind(): string {
    return 'gateway';
  }

  protected learn(): void {}
}

/** The pause that the server asks for, in ms. */
function retryAfterMs({ details }: ServiceError): number {
  const asked = details?.retryAfterMs;
  return typeof asked === 'number' && asked > 0 ? asked : 0;
}

/** The error says nothing about earlier attempts: it is not remembered under the request id. */
function isOfThisAttempt({ code, details }: ServiceError): boolean {
  return OF_ATTEMPT.has(code) || details?.unremembered === true;
}
