import { randomGuid, ServiceError } from '@remora/base';
import {
  type CallHandle,
  type Command,
  type CommandResult,
  type Done,
  type Method,
  type PipeCommand,
  type PipeReply,
  pipeCommand,
  pipeQuery,
  pipeView,
  type Query,
  type QueryResult,
  type ReconnectingChannel,
} from '@remora/protocol';
import { onAbort } from './abort.ts';
import { type GatewayOptions, Gateways } from './gateways.ts';
import type { LeaseJournal } from './journal.ts';
import type { ClientPorts } from './ports.ts';
import { pauseCeilingMs, type RetryPolicy } from './retry.ts';

/** Longest time that a gateway takes for one request. */
const REQUEST_TIMEOUT_MAX_MS = 60_000;
/** The gateway answers by the time-out; this is how much later its answer may arrive. */
const ANSWER_GRACE_MS = 250;
/** A request for the ranges' time; several are made when need be. */
const TIME_REQUEST_MS = 1_000;
/** After a change of leader the master hears of the new one within about a second. */
const FOLLOW_LEADER_MS = 2_000;
const VIEW_TIMEOUT_MS = 1_000;

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
}

/**
 * Sends requests to gateways until they are answered.
 *
 * R1. All attempts of a command carry one request id and one deadline in range time, so it is applied once.
 * R2. A command that may have reached a range never ends as failed without an answer to its id: it ends as
 *     UNKNOWN_OUTCOME. A query that was not answered simply failed.
 * R3. Every request ends by its time-out (plus the grace for the answer), or at once by its signal.
 */
export class Requester {
  readonly ports: ClientPorts;
  readonly gateways: Gateways;
  /** Where leases that hold something are named, if anywhere; set before the first of them. */
  journal: LeaseJournal | undefined;
  readonly retry: RetryPolicy;
  readonly #idPrefix: string;
  #nextId = 1;
  /** Range time minus monotonic time, once known. */
  #rangeTimeOffsetMs: number | undefined;
  /** Of the last answer: it grows when the leader changes. */
  #raftTerm = 0;
  #waitingForTime: ((error: ServiceError | undefined) => void)[] | undefined;
  #closed = false;

  constructor(ports: ClientPorts, options: GatewayOptions & { readonly retry: RetryPolicy }) {
    this.ports = ports;
    this.retry = options.retry;
    this.gateways = new Gateways(ports, options);
    // 122 random bits name this client's life; a counter its requests.
    this.#idPrefix = `${randomGuid(ports.random)}.`;
  }

  get closed(): boolean {
    return this.#closed;
  }

  command(command: Command, options: CommandOptions): Promise<PipeReply<CommandResult>> {
    return this.#promise((done) => this.sendCommand(command, options, done));
  }

  query(query: Query, options: SendOptions): Promise<PipeReply<QueryResult>> {
    return this.#promise((done) => this.sendQuery(query, options, done));
  }

  request<Request, Reply>(method: Method<Request, Reply>, request: Request, options: SendOptions): Promise<Reply> {
    return this.#promise((done) => {
      new Operation(this, method, () => request, { ...options, command: false }, done).start();
    });
  }

  sendQuery(query: Query, options: SendOptions, done: Done<PipeReply<QueryResult>>): CallHandle {
    const build = (timeoutMs: number) => ({ query, timeoutMs });
    const operation = new Operation(this, pipeQuery, build, { ...options, command: false }, this.#learning(done));
    operation.start();
    return operation;
  }

  sendCommand(command: Command, options: CommandOptions, done: Done<PipeReply<CommandResult>>): SentCommand {
    const requestId = this.#idPrefix + (this.#nextId++).toString(36);
    const endsMs = this.ports.clock.monotonicMs() + options.timeoutMs;
    let deadlineMs: number | undefined;
    const build = (timeoutMs: number): PipeCommand => {
      if (deadlineMs === undefined && this.#rangeTimeOffsetMs !== undefined) {
        deadlineMs = endsMs + this.#rangeTimeOffsetMs;
      }
      return {
        command,
        requestId,
        timeoutMs,
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
        ...(options.queue === undefined ? {} : { waitMs: options.queue.waitMs }),
      };
    };
    const settings = { ...options, command: true, answerMs: options.queue?.answerMs };
    const operation = new Operation(this, pipeCommand, build, settings, this.#learning(done));
    if (this.#rangeTimeOffsetMs !== undefined) operation.start();
    else this.#startOnceTimeIsKnown(operation, endsMs);
    return operation;
  }

  /** One attempt at the present gateway, for those who count time from each attempt of their own. */
  attempt<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    timeoutMs: number,
    done: Done<Reply>,
  ): CallHandle {
    const { channel } = this.gateways;
    return channel.call(method, request, { timeoutMs }, (error, reply) => {
      // Whoever counts time has none to find out whether the next attempt would fare better here.
      if (error !== undefined) this.gateways.failed(channel, isNoAnswer(error));
      done(error, reply);
    });
  }

  /**
   * One question that is answered when something happens. DEADLINE_EXCEEDED says that nothing did, and nothing against
   * the gateway.
   */
  ask(query: Query, timeoutMs: number, done: Done<PipeReply<QueryResult>>): CallHandle {
    const { channel } = this.gateways;
    const options = { timeoutMs: timeoutMs + ANSWER_GRACE_MS };
    return channel.call(pipeQuery, { query, timeoutMs }, options, (error, reply) => {
      if (error !== undefined && error.code !== 'DEADLINE_EXCEEDED') this.gateways.failed(channel);
      done(error, reply);
    });
  }

  close(): void {
    this.#closed = true;
    this.gateways.close();
  }

  /** R1 needs the ranges' time before the first command; any reply brings it. */
  #startOnceTimeIsKnown<Request, Reply>(operation: Operation<Request, Reply>, endsMs: number): void {
    const remainingMs = endsMs - this.ports.clock.monotonicMs();
    this.#askTime(Math.min(remainingMs, TIME_REQUEST_MS), (error) => {
      if (error === undefined) return operation.start();
      const lasting = error.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED';
      if (lasting || endsMs <= this.ports.clock.monotonicMs()) return operation.fail(error);
      this.#startOnceTimeIsKnown(operation, endsMs);
    });
  }

  /** One request at a time, for all who wait. */
  #askTime(timeoutMs: number, then: (error: ServiceError | undefined) => void): void {
    if (this.#waitingForTime !== undefined) {
      this.#waitingForTime.push(then);
      return;
    }
    this.#waitingForTime = [then];
    this.sendQuery({ type: 'status' }, { timeoutMs }, (error) => {
      const waiting = this.#waitingForTime ?? [];
      this.#waitingForTime = undefined;
      for (const next of waiting) next(error);
    });
  }

  #learning<Result>(done: Done<PipeReply<Result>>): Done<PipeReply<Result>> {
    return (error, reply) => {
      if (reply?.rangeTimeMs !== undefined) {
        this.#rangeTimeOffsetMs = reply.rangeTimeMs - this.ports.clock.monotonicMs();
      }
      if (reply !== undefined && reply.raftTerm > this.#raftTerm) this.#termBegan(reply.raftTerm);
      done(error, reply);
    };
  }

  #termBegan(term: number): void {
    const first = this.#raftTerm === 0;
    this.#raftTerm = term;
    if (!first) this.ports.clock.setTimer(FOLLOW_LEADER_MS, () => this.followLeader());
  }

  /**
   * Goes over to the gateway of the node that leads, which saves a hop between nodes. Only while there is one range:
   * with several, any gateway is as good as another.
   */
  followLeader(): void {
    if (this.#closed) return;
    const { channel } = this.gateways;
    channel.call(pipeView, undefined, { timeoutMs: VIEW_TIMEOUT_MS }, (_error, view) => {
      const [leader, ...others] = view?.leaders ?? [];
      if (leader === undefined || others.length > 0) return;
      const node = view?.nodes.find(({ descriptor }) => descriptor.nodeId === leader[1]);
      const there = node === undefined ? undefined : this.gateways.other(node.descriptor.clientAddress);
      // Only if this client reaches it: the wrong gateway costs a hop, one that is not there costs seconds.
      there?.call(pipeView, undefined, { timeoutMs: VIEW_TIMEOUT_MS }, (error) => {
        if (error === undefined) this.gateways.prefer(there);
      });
    });
  }

  #promise<Reply>(start: (done: Done<Reply>) => void): Promise<Reply> {
    const { liveness } = this.ports;
    return new Promise((resolve, reject) => {
      liveness.hold();
      start((error, reply) => {
        liveness.release();
        if (error === undefined) resolve(reply as Reply);
        else reject(error);
      });
    });
  }
}

interface OperationSettings extends SendOptions {
  readonly command: boolean;
  readonly answerMs?: number | undefined;
}

class Operation<Request, Reply> implements SentCommand {
  readonly #requester: Requester;
  readonly #method: Method<Request, Reply>;
  readonly #build: (timeoutMs: number) => Request;
  readonly #settings: OperationSettings;
  readonly #done: Done<Reply>;
  readonly #endsMs: number;
  #call: CallHandle | undefined;
  #channel: ReconnectingChannel | undefined;
  #attempts = 0;
  #failures = 0;
  #maybeApplied = false;
  /** That the server is over a limit, if that is how the last attempt failed: it says more than "no answer". */
  #overLimit: ServiceError | undefined;
  #over = false;
  readonly #forgetSignal: (() => void) | undefined;

  constructor(
    requester: Requester,
    method: Method<Request, Reply>,
    build: (timeoutMs: number) => Request,
    settings: OperationSettings,
    done: Done<Reply>,
  ) {
    this.#requester = requester;
    this.#method = method;
    this.#build = build;
    this.#settings = settings;
    this.#done = done;
    this.#endsMs = requester.ports.clock.monotonicMs() + settings.timeoutMs;
    const { signal } = settings;
    if (signal === undefined) return;
    this.#forgetSignal = onAbort(signal, () => this.#aborted(signal));
  }

  get attempts(): number {
    return this.#attempts;
  }

  get gateway(): string {
    return this.#channel === undefined ? '' : this.#requester.gateways.addressOf(this.#channel);
  }

  start(): void {
    const { signal } = this.#settings;
    if (signal?.aborted) this.#aborted(signal);
    else this.#attempt();
  }

  fail(error: ServiceError): void {
    this.#finish(error, undefined);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#forgetSignal?.();
    this.#call?.cancel();
  }

  #attempt(): void {
    if (this.#over) return;
    if (this.#requester.closed) return this.#finish(clientClosed(), undefined);
    const remainingMs = this.#endsMs - this.#requester.ports.clock.monotonicMs();
    if (remainingMs <= 0) return this.#timedOut(this.#overLimit);
    const { channel } = this.#requester.gateways;
    this.#channel = channel;
    this.#attempts++;
    const timeoutMs = Math.min(remainingMs, REQUEST_TIMEOUT_MAX_MS);
    const { answerMs } = this.#settings;
    const options = { timeoutMs: answerMs ?? timeoutMs + ANSWER_GRACE_MS, movable: answerMs === undefined };
    this.#call = channel.call(this.#method, this.#build(timeoutMs), options, (error, reply) => {
      if (this.#over) return;
      if (error !== undefined) return this.#failed(channel, error);
      this.#requester.gateways.served(channel);
      this.#finish(undefined, reply);
    });
  }

  #failed(channel: ReconnectingChannel, error: ServiceError): void {
    this.#failures++;
    const { gateways } = this.#requester;
    // A blocking acquire is asked again now and then without anybody's fault.
    if (error.details?.mute === true) gateways.failed(channel, true);
    else if (isNoAnswer(error) && this.#settings.answerMs === undefined) gateways.doubt(channel);
    else gateways.failed(channel);
    if (error.code === 'UNKNOWN_OUTCOME') this.#maybeApplied = true;
    this.#overLimit = error.retry === 'later' ? error : undefined;
    if (error.code === 'DEADLINE_EXCEEDED') return this.#timedOut(error);
    // `applied`: the range remembers the id but not the answer; asking again brings nothing.
    if (error.retry === 'no' || error.details?.applied === true) return this.#finish(error, undefined);
    const { clock } = this.#requester.ports;
    const remainingMs = this.#endsMs - clock.monotonicMs();
    if (remainingMs <= 0 || this.#attempts >= this.#requester.retry.attemptsMax) return this.#timedOut(error);
    clock.setTimer(Math.min(remainingMs, this.#pauseMs(channel, error)), () => this.#attempt());
  }

  /**
   * Another gateway is asked at once, one round of them; then with growing pauses. A server that is over a limit is
   * always given a pause, from the first time on no shorter than it asks for.
   */
  #pauseMs(failed: ReconnectingChannel, error: ServiceError): number {
    const { gateways, ports, retry } = this.#requester;
    const overLimit = error.retry === 'later';
    if (!overLimit && gateways.channel !== failed && this.#failures < gateways.count) return 0;
    const askedMs = overLimit ? Math.min(retry.maxMs, retryAfterMs(error)) : 0;
    const ceilingMs = Math.max(pauseCeilingMs(retry, this.#failures), 2 * askedMs);
    return ceilingMs / 2 + ports.random.int(Math.ceil(ceilingMs / 2));
  }

  /** R2. */
  #timedOut(cause: ServiceError | undefined): void {
    if (this.#maybeApplied && this.#settings.command) {
      const message = 'the answer was lost: the command may or may not have been applied';
      return this.#finish(new ServiceError('UNKNOWN_OUTCOME', message, { cause }), undefined);
    }
    if (cause !== undefined && cause.code !== 'UNKNOWN_OUTCOME') return this.#finish(cause, undefined);
    const message = `no answer within ${Math.round(this.#settings.timeoutMs)} ms`;
    this.#finish(new ServiceError('DEADLINE_EXCEEDED', message, { cause }), undefined);
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

/** The range, or the gateway itself, did not answer. */
function isNoAnswer({ code }: ServiceError): boolean {
  return code === 'UNAVAILABLE' || code === 'DEADLINE_EXCEEDED' || code === 'UNKNOWN_OUTCOME';
}

/** How long the server asks to be left alone. */
function retryAfterMs({ details }: ServiceError): number {
  const asked = details?.retryAfterMs;
  return typeof asked === 'number' && asked > 0 ? asked : 0;
}

export function clientClosed(): ServiceError {
  return new ServiceError('CANCELED', 'the client is closed');
}
