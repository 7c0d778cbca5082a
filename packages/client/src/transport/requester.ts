import type { ServiceError } from '@remora/base';
import {
  type CallHandle,
  type Command,
  type CommandResult,
  type Done,
  type Method,
  type PipeReply,
  pipeQuery,
  pipeView,
  type Query,
  type QueryResult,
} from '@remora/protocol';
import { type ClientMetrics, safeMetrics } from '../observe/client-metrics.ts';
import type { ClientPorts } from '../ports.ts';
import type { Credentials } from './credentials.ts';
import { Discovery } from './discovery.ts';
import { type GatewayOptions, Gateways } from './gateways.ts';
import { type KnownToken, LogIns } from './log-ins.ts';
import {
  ANSWER_GRACE_MS,
  CommandOperation,
  type CommandOptions,
  type OperationPort,
  PlainOperation,
  QueryOperation,
  type SendOptions,
  type SentCommand,
} from './operation.ts';
import { isLasting, isNoAnswer } from './request-errors.ts';
import { pauseCeilingMs, type RetryPolicy } from './retry.ts';
import { traceparentOf } from './trace-context.ts';

/** For one query of the ranges' time; it is repeated if needed. */
const TIME_REQUEST_MS = 1_000;
/** After a change of leader the masters know the new one within about a second. */
const FOLLOW_LEADER_MS = 2_000;
const VIEW_TIMEOUT_MS = 1_000;

export interface RequesterOptions extends Omit<GatewayOptions, 'guard'> {
  readonly retry: RetryPolicy;
  readonly credentials?: Credentials | undefined;
  readonly traceContext?: (() => string | undefined) | undefined;
  readonly metrics?: ClientMetrics | undefined;
}

/**
 * Sends requests to gateways until they are answered.
 *
 * R1. All attempts of a command carry one request id and one deadline in range time, so it is applied once.
 * R2. A command that may have reached a range never ends as failed unless that range answered its request id: it ends
 *     as UNKNOWN_OUTCOME. A query without an answer has failed.
 * R3. Every request ends by its time-out (plus the grace for the answer), or at once when its signal aborts.
 * R4. An attempt of a command says so if the answer to an earlier one was lost. A gateway that may not execute the
 *     command any more, as its user has lost a permission, then reports the outcome as unknown, and not as denied.
 */
export class Requester implements OperationPort {
  readonly ports: ClientPorts;
  readonly gateways: Gateways;
  readonly discovery: Discovery;
  readonly retry: RetryPolicy;
  readonly traceContext: (() => string | undefined) | undefined;
  /** Absent: nobody collects numbers. */
  readonly metrics: ClientMetrics | undefined;
  /** Absent: the client has no credentials. */
  readonly logIns: LogIns | undefined;
  readonly #idPrefix: string;
  #nextId = 1;
  /** The range time of the latest reply. */
  #rangeTimeMs: number | undefined;
  /** Range time minus monotonic time, once known. */
  #rangeTimeOffsetMs: number | undefined;
  /** The term of the latest reply; it grows when the leader changes. */
  #raftTerm = 0;
  #waitingForTime: ((error: ServiceError | undefined) => void)[] | undefined;
  #closed = false;

  constructor(ports: ClientPorts, { retry, credentials, traceContext, metrics, ...options }: RequesterOptions) {
    this.ports = ports;
    this.retry = retry;
    this.metrics = metrics && safeMetrics(metrics, ports.logger);
    this.traceContext = traceContext && (() => traceparentOf(traceContext, ports.logger));
    const { clock, random, backgroundRenewer } = ports;
    const onToken = backgroundRenewer && ((token: KnownToken) => backgroundRenewer.useToken(token));
    const logIns = credentials && new LogIns({ clock, random, onToken }, credentials);
    this.logIns = logIns;
    this.gateways = new Gateways(ports, { ...options, guard: logIns && ((link) => logIns.guard(link)) });
    this.discovery = new Discovery({
      clock,
      random,
      mayLogInAt: ports.mayLogInAt,
      gateways: this.gateways,
      onTold: (told) => backgroundRenewer?.learn(told),
    });
    // 128 random bits identify this client, and a counter its requests. Short, as every log entry carries an id.
    this.#idPrefix = `${ports.random.bytes(16).toString('base64url')}.`;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get logsIn(): boolean {
    return this.logIns !== undefined;
  }

  command(command: Command, options: CommandOptions): Promise<PipeReply<CommandResult>> {
    return this.#promise((done) => this.sendCommand(command, options, done));
  }

  query(query: Query, options: SendOptions): Promise<PipeReply<QueryResult>> {
    return this.#promise((done) => this.sendQuery(query, options, done));
  }

  request<Request, Reply>(method: Method<Request, Reply>, request: Request, options: SendOptions): Promise<Reply> {
    return this.#promise((done) => {
      new PlainOperation(this, method, request, { options, done }).start();
    });
  }

  sendQuery(query: Query, options: SendOptions, done: Done<PipeReply<QueryResult>>): CallHandle {
    const operation = new QueryOperation(this, query, options, done);
    operation.start();
    return operation;
  }

  sendCommand(command: Command, options: CommandOptions, done: Done<PipeReply<CommandResult>>): SentCommand {
    const requestId = this.#idPrefix + this.#nextId++;
    const operation = new CommandOperation(this, command, { requestId, options }, done);
    // A request that was aborted already does not need the time.
    if (this.#rangeTimeOffsetMs !== undefined || options.signal?.aborted) operation.start();
    else this.#startOnceTimeIsKnown(operation);
    return operation;
  }

  /** The ranges' time at a moment of the monotonic clock; undefined before any of them has told it. */
  rangeTimeAt(monotonicMs: number): number | undefined {
    return this.#rangeTimeOffsetMs === undefined ? undefined : monotonicMs + this.#rangeTimeOffsetMs;
  }

  /** Takes the range time and the term that every reply of a range carries. */
  learn({ rangeTimeMs, raftTerm }: PipeReply<unknown>): void {
    // The first reply of a millisecond counts: it was the fastest, and there are dozens of them.
    if (rangeTimeMs !== undefined && rangeTimeMs !== this.#rangeTimeMs) {
      this.#rangeTimeMs = rangeTimeMs;
      this.#rangeTimeOffsetMs = rangeTimeMs - this.ports.clock.monotonicMs();
    }
    if (raftTerm > this.#raftTerm) this.#termBegan(raftTerm);
  }

  /** One attempt at the present gateway, for callers that measure time from each attempt, and retry themselves. */
  attempt<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    timeoutMs: number,
    done: Done<Reply>,
  ): CallHandle {
    const { channel } = this.gateways;
    return channel.call(method, request, { timeoutMs, movable: true }, (error, reply) => {
      // These callers have no time to try the same gateway again.
      if (error !== undefined) this.gateways.failed(channel, isNoAnswer(error));
      done(error, reply);
    });
  }

  /**
   * Sends a query that is answered when something happens. DEADLINE_EXCEEDED means that nothing did: the gateway is not
   * at fault.
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
    this.discovery.close();
    this.gateways.close();
  }

  /**
   * R1 needs the ranges' time before the first command; any reply carries it. The query for it is sent at most as often
   * as the command may be sent, and with pauses: an unreachable gateway fails it at once.
   */
  #startOnceTimeIsKnown(operation: CommandOperation, asks = 1): void {
    if (operation.over) return;
    if (operation.remainingMs <= 0) return operation.unanswered(undefined);
    this.#askTime(Math.min(operation.remainingMs, TIME_REQUEST_MS), (error) => {
      if (operation.over) return;
      const { remainingMs } = operation;
      if (error === undefined) return operation.start(remainingMs);
      const lasting = isLasting(error);
      if (!lasting && remainingMs <= 0) return operation.unanswered(error);
      if (lasting || asks >= operation.attemptsMax) return operation.fail(error);
      const pauseMs = Math.min(remainingMs, pauseCeilingMs(this.retry, asks));
      this.ports.clock.setTimer(pauseMs, () => this.#startOnceTimeIsKnown(operation, asks + 1));
    });
  }

  /** One query at a time, for all commands that wait. */
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

  #termBegan(term: number): void {
    const first = this.#raftTerm === 0;
    this.#raftTerm = term;
    if (!first) this.ports.clock.setTimer(FOLLOW_LEADER_MS, () => this.followLeader());
  }

  /**
   * Changes to the gateway of the leader's node, which saves a hop between nodes. Only while there is a single range:
   * with several, all gateways are equally good.
   */
  followLeader(): void {
    if (this.#closed) return;
    const { channel } = this.gateways;
    channel.call(pipeView, undefined, { timeoutMs: VIEW_TIMEOUT_MS }, (_error, view) => {
      const [leader, ...others] = view?.leaders ?? [];
      if (leader === undefined || others.length > 0) return;
      const node = view?.nodes.find(({ descriptor }) => descriptor.nodeId === leader[1]);
      const there = node === undefined ? undefined : this.gateways.other(node.descriptor.clientAddress);
      // Only if this client reaches it: a wrong gateway costs a hop, an unreachable one costs seconds.
      there?.call(pipeView, undefined, { timeoutMs: VIEW_TIMEOUT_MS }, (error) => {
        if (error === undefined) this.gateways.prefer(there);
      });
    });
  }

  #promise<Reply>(start: (done: Done<Reply>) => void): Promise<Reply> {
    const { liveness } = this.ports;
    return new Promise((resolve, reject) => {
      liveness.hold();
      try {
        start((error, reply) => {
          liveness.release();
          if (error === undefined) resolve(reply as Reply);
          else reject(error);
        });
      } catch (error) {
        liveness.release(); // It did not begin, for example because of an invalid signal.
        reject(error);
      }
    });
  }
}
