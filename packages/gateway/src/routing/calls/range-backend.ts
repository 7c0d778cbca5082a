import { type Clock, type Logger, type Random, type Span, sleep } from '@remora/base';
import {
  type ClusterView,
  type Command,
  type CommandResult,
  changedTwice,
  type Query,
  type QueryResult,
  type RpcDialer,
} from '@remora/protocol';
import { CLUSTER, type Clearance } from '../../authorisation/clearance.ts';
import type { ClearedBackend } from '../../authorisation/cleared-backend.ts';
import type {
  BackendDone,
  LockWatchListener,
  LockWatchOptions,
  RequestTerms,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '../../backend.ts';
import { Coordinator } from '../../transactions/coordinator.ts';
import { TransactionPeers } from '../../transactions/peers.ts';
import { LeaderSearch } from '../routes/leader-search.ts';
import type { RouteLookupStats } from '../routes/route-lookup-stats.ts';
import { type AskView, RouteRefresh } from '../routes/route-refresh.ts';
import { Routes } from '../routes/routes.ts';
import { LockWatch, type LockWatchDeps } from '../watches/lock-watch.ts';
import { MergedWatch, type MergedWatchDeps } from '../watches/merged-watch.ts';
import { WatchStreams } from '../watches/watch-streams.ts';
import { type BackendInFlight, nothingInFlight } from './in-flight.ts';
import { ManyRanges } from './many-ranges.ts';
import { type DrawNewest, NewestRevision } from './newest-revision.ts';
import type { AskDone, BuildCommand, CallTerms, CommandIdentity, RangeCallsDeps } from './range-calls.ts';
import { Recall, type Recalled } from './recall.ts';
import { type RequestDeps, RoutedCall, type RoutedRequest } from './request.ts';
import type { RequestMeter } from './request-meter.ts';
import { type AcquireDeps, RoutedAcquire } from './routed-acquire.ts';
import { RoutedCommand, type RoutedCommandDeps } from './routed-command.ts';
import { ATTEMPT_MS, awaitsSomething, RangeQuery, RoutedQuery, type RoutedQueryDeps } from './routed-query.ts';
import { SlowAnswers } from './slow-answers.ts';
import { GRANT_ENDS_SHARE, WAITS_MAX, WaitSlots } from './wait-slots.ts';

export interface BackendDeps {
  readonly nodeId: number;
  readonly dialer: RpcDialer;
  readonly view: () => ClusterView;
  /** Calls to the master. */
  readonly master: {
    readonly newest: DrawNewest;
    /** Asks once for a revision above a floor that the master issues to no other caller. */
    readonly draw: DrawNewest;
    readonly view: AskView;
  };
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Requests that wait for locks at a time; further ones are refused with RESOURCE_EXHAUSTED. */
  readonly waitsMax?: number;
  /** Called for each of those. */
  readonly onWaitRefused?: () => void;
  readonly meter?: RequestMeter | undefined;
}

const ENDING_POLL_MS = 5;

/**
 * The gateway's way to the ranges (see `Backend`). It asks nobody's permission: doors use the `AuthorisedBackend`.
 *
 * RB1. Every transaction of a client, through any service, passes `command`. One that could change a key twice is
 *      refused there, before it is sent to a range, however many ranges its keys are in (protocol's changed-once.ts).
 */
export class RangeBackend implements ClearedBackend {
  readonly nodeId: number;
  readonly #deps: BackendDeps;
  readonly #callDeps: RequestDeps;
  readonly lookupStats: RouteLookupStats = { routes: 0, leaders: 0 };
  readonly #routes: Routes;
  readonly #many: ManyRanges;
  readonly #commandDeps: RoutedCommandDeps;
  readonly #queryDeps: RoutedQueryDeps;
  readonly #acquireDeps: AcquireDeps;
  readonly #coordinator: Coordinator;
  /** For the ranges of this node. */
  readonly peers: TransactionPeers;
  readonly #watchDeps: MergedWatchDeps;
  readonly #lockWatchDeps: LockWatchDeps;
  readonly #idPrefix: string;
  readonly #inFlight = nothingInFlight();
  readonly #waits: WaitSlots;
  readonly #grantEnds: WaitSlots;
  #nextRequest = 1;

  constructor(deps: BackendDeps) {
    this.nodeId = deps.nodeId;
    this.#deps = deps;
    const refresh = new RouteRefresh(deps.clock, deps.master.view, this.lookupStats);
    this.#routes = new Routes(deps.clock, deps.view, () => refresh.request(this.#routes));
    const waitsMax = deps.waitsMax ?? WAITS_MAX;
    const onRefused = deps.onWaitRefused ?? (() => {});
    this.#waits = new WaitSlots(waitsMax, onRefused);
    this.#grantEnds = new WaitSlots(Math.ceil(waitsMax * GRANT_ENDS_SHARE), onRefused);
    const search = new LeaderSearch({ ...deps, routes: this.#routes, stats: this.lookupStats });
    const routing = { routes: this.#routes, search };
    const slow = new SlowAnswers({ ...routing, clock: deps.clock });
    this.#callDeps = { ...deps, ...routing, slow, inFlight: this.#inFlight };
    const rangeCalls: RangeCallsDeps = {
      ...{ routes: this.#routes, clock: deps.clock },
      ask: (query, span, { timeoutMs, clearance }, done) =>
        this.#start(new RangeQuery(query, timeoutMs, 0, clearance, span), done),
      execute: (build, span, options, done) => this.#execute(build, span, options, done),
    };
    const { random, master } = deps;
    const newest = new NewestRevision({ clock: deps.clock, random, newest: master.newest });
    this.#many = new ManyRanges({ ...rangeCalls, newest });
    this.#queryDeps = {
      ...{ clock: deps.clock, routes: this.#routes, many: this.#many, newest },
      calls: this.#callDeps,
    };
    this.#coordinator = new Coordinator({
      ...{ ...rangeCalls, random, draw: master.draw, newest },
      newTxnId: () => this.#newRequestId(),
    });
    this.#commandDeps = {
      ...{ routes: this.#routes, calls: this.#callDeps },
      ...{ many: this.#many, coordinator: this.#coordinator },
    };
    this.#acquireDeps = {
      ...{ clock: deps.clock, random: deps.random, waits: this.#waits },
      command: (clearance, command, options, done) => this.#command(clearance, command, options, done),
      commandAsItIs: (clearance, command, options, done) => this.#command(clearance, command, options, done, true),
      query: (clearance, query, options, done) => this.#query(clearance, query, options, done),
    };
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
   * Resolves when no transaction is coordinated here any more, or after `timeoutMs`. Call it before a gateway ends,
   * when it takes no more requests: a transaction that it leaves unfinished keeps others waiting until it has expired.
   */
  async transactionsEnded(timeoutMs: number): Promise<void> {
    const { clock } = this.#deps;
    const endMs = clock.monotonicMs() + timeoutMs;
    while (this.#coordinator.inFlight > 0 && clock.monotonicMs() < endMs) {
      await sleep(clock, ENDING_POLL_MS);
    }
  }

  view(): ClusterView {
    return this.#deps.view();
  }

  rangeTimeMs(): number | undefined {
    return this.#routes.anyTimeMs();
  }

  /** For work of the cluster itself. */
  command(command: Command, options: RequestTerms, done: BackendDone<CommandResult>): () => void {
    return this.commandFor(CLUSTER, command, options, done);
  }

  commandFor(
    clearance: Clearance,
    command: Command,
    options: RequestTerms,
    done: BackendDone<CommandResult>,
  ): () => void {
    if (command.type === 'lock' && command.command.type === 'acquire') {
      const request = new RoutedAcquire(this.#acquireDeps, command.command, { options, clearance }, done);
      request.start();
      return () => request.cancel();
    }
    const refusal = command.type === 'txn' ? changedTwice(command.txn) : undefined;
    if (refusal === undefined) return this.#command(clearance, command, options, done);
    done(refusal, undefined);
    return nothing;
  }

  recall(recalled: Recalled, done: BackendDone<CommandResult>): () => void {
    const recall = new Recall(this.#callDeps, recalled, done);
    recall.start();
    return () => recall.cancel();
  }

  #command(
    clearance: Clearance,
    command: Command,
    options: RequestTerms,
    done: BackendDone<CommandResult>,
    keepTimes = false,
  ): () => void {
    const requestId = options.requestId ?? this.#newRequestId();
    const routed = new RoutedCommand(this.#commandDeps, command, { requestId, options, clearance, keepTimes }, done);
    routed.start();
    return () => routed.cancel();
  }

  /** For work of the cluster itself. */
  query(query: Query, options: RequestTerms, done: BackendDone<QueryResult>): () => void {
    return this.queryFor(CLUSTER, query, options, done);
  }

  queryFor(clearance: Clearance, query: Query, options: RequestTerms, done: BackendDone<QueryResult>): () => void {
    if (!awaitsSomething(query)) return this.#query(clearance, query, options, done);
    const slots = query.type === 'grantEnd' ? this.#grantEnds : this.#waits;
    const giveSlot = slots.take();
    if (giveSlot === undefined) {
      done(slots.refusal(), undefined);
      return nothing;
    }
    const cancel = this.#query(clearance, query, options, (error, reply) => {
      giveSlot();
      done(error, reply);
    });
    return () => {
      giveSlot();
      cancel();
    };
  }

  #query(clearance: Clearance, query: Query, options: RequestTerms, done: BackendDone<QueryResult>): () => void {
    const routed = new RoutedQuery(this.#queryDeps, query, { options, clearance }, done);
    routed.start();
    return () => routed.cancel();
  }

  /** Sends a command to the one range that has a span; ends with STALE_EPOCH if no range has all of it. */
  #execute(
    build: BuildCommand,
    span: Span,
    { requestId, deadlineMs, timeoutMs, clearance }: CommandIdentity & CallTerms,
    done: AskDone,
  ): () => void {
    // Field by field: spreading other objects costs a tenth of a command.
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
      clearance,
    };
    return this.#start(request, done);
  }

  #start(request: RoutedRequest, done: AskDone): () => void {
    const call = new RoutedCall(this.#callDeps, request, { completed: done });
    call.start();
    return () => call.cancel();
  }

  #newRequestId(): string {
    return this.#idPrefix + (this.#nextRequest++).toString(36);
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

function nothing(): void {}
