import type { Clock, Logger, Random } from '@remora/base';
import { type Bytes, ServiceError, type Span } from '@remora/base';
import type {
  ClusterView,
  Command,
  CommandResult,
  Query,
  QueryResult,
  RangeReply,
  RangeRequest,
  RpcDialer,
  TxnPartOutcome,
} from '@remora/protocol';
import { COMMAND_DEADLINE_MAX_MS, changedTwice } from '@remora/protocol';
import type {
  Backend,
  BackendDone,
  LockWatchListener,
  LockWatchOptions,
  RequestOptions,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '../../backend.ts';
import { Coordinator } from '../../transactions/coordinator.ts';
import { TransactionPeers } from '../../transactions/peers.ts';
import { LeaderSearch } from '../routes/leader-search.ts';
import { routingKey, routingSpan } from '../routes/request-keys.ts';
import type { RouteLookupStats } from '../routes/route-lookup-stats.ts';
import { type AskView, RouteRefresh } from '../routes/route-refresh.ts';
import { Routes } from '../routes/routes.ts';
import { LockWatch, type LockWatchDeps } from '../watches/lock-watch.ts';
import { MergedWatch, type MergedWatchDeps } from '../watches/merged-watch.ts';
import { WatchStreams } from '../watches/watch-streams.ts';
import { Acquires } from './acquires.ts';
import { type BackendInFlight, nothingInFlight } from './in-flight.ts';
import { ManyRanges } from './many-ranges.ts';
import { type DrawNewest, NewestRevision } from './newest-revision.ts';
import type { BuildCommand, CommandIdentity, RangeCallsDeps } from './range-calls.ts';
import { type RequestDeps, type RequestDone, RoutedCall, type RoutedRequest } from './request.ts';
import {
  ATTEMPT_MS,
  awaitsSomething,
  RangeQuery,
  REQUEST_TIMEOUT_MAX_MS,
  RoutedQuery,
  type RoutedQueryDeps,
} from './routed-query.ts';
import { SlowAnswers } from './slow-answers.ts';
import { GRANT_ENDS_SHARE, WAITS_MAX, WaitSlots } from './wait-slots.ts';

export interface BackendDeps {
  readonly nodeId: number;
  readonly dialer: RpcDialer;
  readonly view: () => ClusterView;
  /** What is asked of the master. */
  readonly master: {
    readonly newest: DrawNewest;
    /** Asks once for a revision above a floor that nobody else is given. */
    readonly draw: DrawNewest;
    readonly view: AskView;
  };
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Requests that wait for locks at a time; further ones are refused with RESOURCE_EXHAUSTED. */
  readonly waitsMax?: number;
  /** Is told of each of those. */
  readonly onWaitRefused?: () => void;
}

const ENDING_POLL_MS = 5;

/**
 * The gateway's way to the ranges (see `Backend`).
 *
 * RB1. Every transaction of a client, of whatever service, passes `command`: one that could change a key twice is refused there,
 *      before any range hears of it, however many ranges its keys are in (protocol's changed-once.ts).
 */
export class RangeBackend implements Backend {
  readonly nodeId: number;
  readonly #deps: BackendDeps;
  readonly #callDeps: RequestDeps;
  readonly lookups: RouteLookupStats = { routes: 0, leaders: 0 };
  readonly #routes: Routes;
  readonly #many: ManyRanges;
  readonly #queryDeps: RoutedQueryDeps;
  readonly #coordinator: Coordinator;
  /** For the ranges of this node. */
  readonly peers: TransactionPeers;
  readonly #watchDeps: MergedWatchDeps;
  readonly #lockWatchDeps: LockWatchDeps;
  readonly #idPrefix: string;
  readonly #inFlight = nothingInFlight();
  readonly #waits: WaitSlots;
  readonly #acquires: Acquires;
  readonly #grantEnds: WaitSlots;
  #nextRequest = 1;

  constructor(deps: BackendDeps) {
    this.nodeId = deps.nodeId;
    this.#deps = deps;
    const refresh = new RouteRefresh(deps.clock, deps.master.view, this.lookups);
    this.#routes = new Routes(deps.clock, deps.view, () => refresh.want(this.#routes));
    const waitsMax = deps.waitsMax ?? WAITS_MAX;
    const onRefused = deps.onWaitRefused ?? (() => {});
    this.#waits = new WaitSlots(waitsMax, onRefused);
    this.#acquires = new Acquires({
      ...{ clock: deps.clock, random: deps.random, waits: this.#waits },
      command: (command, options, done) => this.#command(command, options, done),
      commandAsItIs: (command, options, done) => this.#command(command, options, done, (same) => same),
      query: (query, options, done) => this.#query(query, options, done),
    });
    this.#grantEnds = new WaitSlots(Math.ceil(waitsMax * GRANT_ENDS_SHARE), onRefused);
    const search = new LeaderSearch({ ...deps, routes: this.#routes, lookups: this.lookups });
    const routing = { routes: this.#routes, search };
    const slow = new SlowAnswers({ ...routing, clock: deps.clock });
    this.#callDeps = { ...deps, ...routing, slow, inFlight: this.#inFlight };
    const rangeCalls: RangeCallsDeps = {
      ...{ routes: this.#routes, clock: deps.clock },
      ask: (query, span, timeoutMs, done) => this.#start(new RangeQuery(query, timeoutMs, 0, span), done),
      execute: (build, span, options, done) => this.#execute(build, span, options, done),
    };
    const { random, master } = deps;
    const newest = new NewestRevision({ clock: deps.clock, random, newest: master.newest });
    this.#many = new ManyRanges({ ...rangeCalls, newest });
    this.#queryDeps = {
      ...{ clock: deps.clock, routes: this.#routes, many: this.#many, newest },
      call: (request, done) => new RoutedCall(this.#callDeps, request, done),
    };
    this.#coordinator = new Coordinator({
      ...{ ...rangeCalls, random, draw: master.draw, newest },
      newTxnId: () => this.#newRequestId(),
    });
    this.peers = new TransactionPeers(rangeCalls);
    this.#watchDeps = {
      ...deps,
      routes: this.#routes,
      inFlight: this.#inFlight,
      streams: new WatchStreams(deps.dialer, deps.clock),
      now: (span, done) => this.#many.now(span, done),
    };
    this.#lockWatchDeps = { ...deps, ...routing, inFlight: this.#inFlight };
    // Unique over restarts: 96 random bits name this gateway's life.
    this.#idPrefix = `${deps.random.bytes(12).toString('base64url')}.`;
  }

  inFlight(): Readonly<BackendInFlight> & { readonly coordinated: number } {
    return { ...this.#inFlight, coordinated: this.#coordinator.inFlight };
  }

  /**
   * Resolves when no transaction is coordinated here any more, or when it has waited long enough. Before a gateway ends that
   * takes no more requests: what it leaves in the middle keeps others waiting until it has expired.
   */
  async transactionsEnded(timeoutMs: number): Promise<void> {
    const { clock } = this.#deps;
    const endMs = clock.monotonicMs() + timeoutMs;
    while (this.#coordinator.inFlight > 0 && clock.monotonicMs() < endMs) {
      await new Promise<void>((resolve) => clock.setTimer(ENDING_POLL_MS, resolve));
    }
  }

  view(): ClusterView {
    return this.#deps.view();
  }

  rangeTimeMs(): number | undefined {
    return this.#routes.anyTimeMs();
  }

  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    if (command.type === 'lock' && command.command.type === 'acquire') {
      return this.#acquires.acquire(command.command, options, done);
    }
    const refusal = command.type === 'txn' ? changedTwice(command.txn) : undefined;
    if (refusal !== undefined) {
      done(refusal, undefined);
      return () => {};
    }
    return this.#command(command, options, done);
  }

  #command(
    command: Command,
    options: RequestOptions,
    done: BackendDone<CommandResult>,
    build = withDeadline,
  ): () => void {
    const requestId = options.requestId ?? this.#newRequestId();
    if (command.type === 'compact' && this.#isNumbered(command)) {
      const { deadlineMs } = options;
      const timeoutMs = Math.min(options.timeoutMs, REQUEST_TIMEOUT_MAX_MS);
      return this.#overRanges(command, { requestId, deadlineMs, timeoutMs }, done, undefined);
    }
    let giveUpMany: (() => void) | undefined;
    const request = new RoutedCommand(command, requestId, options, build);
    const one = new RoutedCall(this.#callDeps, request, (error, reply) => {
      const earlier = reply?.result.type === 'txnPart' ? reply.result : undefined;
      if (error?.code !== 'STALE_EPOCH' && earlier === undefined) return answer(error, reply, done);
      const timeoutMs = one.remainingMs;
      giveUpMany = this.#overRanges(command, { requestId, deadlineMs: options.deadlineMs, timeoutMs }, done, earlier);
    });
    one.start();
    return () => (giveUpMany === undefined ? one.cancel() : giveUpMany());
  }

  /** Whether the master numbers changes: then a compaction asks it for the newest revision, though one range has all keys. */
  #isNumbered(command: Command): boolean {
    return this.#routes.find(routingKey(command))?.revisionSource === 'master';
  }

  /** By the one range that has a span; ends with STALE_EPOCH when there is none. */
  #execute(
    build: BuildCommand,
    span: Span,
    { requestId, deadlineMs, timeoutMs }: CommandIdentity & { readonly timeoutMs: number },
    done: RequestDone,
  ): () => void {
    // Field by field: objects put together of others cost a tenth of a command.
    const request: RoutedRequest = {
      key: span.start,
      span: () => span,
      needsTime: true,
      build: (atMs, nowMs) => ({ kind: 'command', command: build(atMs, nowMs) }),
      command: true,
      requestId,
      timeoutMs,
      deadlineMs,
      attemptMs: ATTEMPT_MS,
      awaits: false,
    };
    return this.#start(request, done);
  }

  /** `earlier`: what one of them remembers of an earlier attempt. */
  #overRanges(
    command: Command,
    options: CommandIdentity & { readonly timeoutMs: number },
    done: BackendDone<CommandResult>,
    earlier: TxnPartOutcome | undefined,
  ): () => void {
    switch (command.type) {
      case 'compact':
        return this.#many.compact(command.revision, options, done);
      case 'kv':
      case 'txn':
        return this.#coordinator.command(command, options, done, earlier);
      default:
        done(new ServiceError('INTERNAL', `a ${command.type} has its keys in one range`), undefined);
        return () => {};
    }
  }

  #newRequestId(): string {
    return this.#idPrefix + (this.#nextRequest++).toString(36);
  }

  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    if (!awaitsSomething(query)) return this.#query(query, options, done);
    const slots = query.type === 'grantEnd' ? this.#grantEnds : this.#waits;
    const giveSlot = slots.take();
    if (giveSlot === undefined) {
      done(slots.refusal(), undefined);
      return () => {};
    }
    const cancel = this.#query(query, options, (error, reply) => {
      giveSlot();
      done(error, reply);
    });
    return () => {
      giveSlot();
      cancel();
    };
  }

  #query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const routed = new RoutedQuery(this.#queryDeps, query, options, done);
    routed.start();
    return () => routed.cancel();
  }

  #start(request: RoutedRequest, done: RequestDone): () => void {
    const call = new RoutedCall(this.#callDeps, request, done);
    call.start();
    return () => call.cancel();
  }

  watch(options: WatchOptions, listener: WatchListener): WatchControl {
    const watch = new MergedWatch(this.#watchDeps, options, listener);
    watch.start();
    return watch;
  }

  watchLocks(options: LockWatchOptions, listener: LockWatchListener): LockWatch {
    const watch = new LockWatch(this.#lockWatchDeps, options, listener);
    watch.start();
    return watch;
  }
}

/** A command that a client asked for: they come by the hundred thousand, so what it takes to send one is one object. */
class RoutedCommand implements RoutedRequest {
  readonly command = true;
  readonly requestId: string;
  readonly timeoutMs: number;
  readonly deadlineMs: number | undefined;
  readonly attemptMs = ATTEMPT_MS;
  readonly awaits = false;
  readonly #command: Command;
  readonly #build: typeof withDeadline;

  constructor(command: Command, requestId: string, options: RequestOptions, build: typeof withDeadline) {
    this.requestId = requestId;
    this.timeoutMs = Math.min(options.timeoutMs, REQUEST_TIMEOUT_MAX_MS);
    this.deadlineMs = options.deadlineMs;
    this.#command = command;
    this.#build = build;
  }

  get key(): Bytes {
    return routingKey(this.#command);
  }

  span(): Span | undefined {
    return routingSpan(this.#command);
  }

  build(deadlineMs: number): RangeRequest['body'] {
    return { kind: 'command', command: this.#build(this.#command, deadlineMs) };
  }
}

/** Lock commands carry times of their own, which only the gateway can reckon. */
function withDeadline(command: Command, deadlineMs: number): Command {
  if (command.type !== 'lock') return command;
  const lock = command.command;
  switch (lock.type) {
    case 'acquire':
      return { type: 'lock', command: { ...lock, deadlineMs } };
    case 'release':
      // 0: the client says that none of its acquires can still be on its way, so no mark is needed.
      if (lock.deadlineMs === 0) return command;
      return { type: 'lock', command: { ...lock, deadlineMs: deadlineMs + COMMAND_DEADLINE_MAX_MS } };
    case 'cancel':
      // The mark must outlive any acquire that may still be on its way.
      return { type: 'lock', command: { ...lock, deadlineMs: deadlineMs + COMMAND_DEADLINE_MAX_MS } };
    case 'forceRelease':
    case 'downgrade':
    case 'setCapacity':
    case 'revoke':
    case 'setData':
    case 'setDepth':
    case 'forget':
    case 'endDelay':
      return command;
  }
}

function answer<Result extends CommandResult | QueryResult>(
  error: ServiceError | undefined,
  reply: RangeReply | undefined,
  done: BackendDone<Result>,
): void {
  if (reply === undefined) done(error ?? new ServiceError('INTERNAL', 'neither an answer nor an error'), undefined);
  else done(undefined, reply as RangeReply & { readonly result: Result });
}
