import { type Clock, isErrorCode, type Logger, type Random, ServiceError, type Span } from '@remora/base';
import type { RangeDescriptor, RpcDialer, StreamHandle, WatchMessage, WatchRequest } from '@remora/protocol';
import { kvRoutingKey, rangeInfo, rangeWatch } from '@remora/protocol';
import type { WatchControl, WatchListener, WatchOptions } from '../backend.ts';
import type { Routes } from './routes.ts';
import type { BackendUnderWay } from './under-way.ts';

export interface WatchDeps {
  readonly dialer: RpcDialer;
  readonly routes: Routes;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly underWay: BackendUnderWay;
}

const INFO_TIMEOUT_MS = 500;
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

interface NodeStream {
  readonly handle: StreamHandle<WatchRequest>;
  readonly watches: Map<number, RoutedWatch>;
  progressAsked: boolean;
}

/** One stream per node; every watch whose range that node leads shares it. */
export class WatchStreams {
  readonly #dialer: RpcDialer;
  readonly #clock: Clock;
  readonly #byNode = new Map<number, NodeStream>();

  constructor(dialer: RpcDialer, clock: Clock) {
    this.#dialer = dialer;
    this.#clock = clock;
  }

  open(node: number, request: Extract<WatchRequest, { kind: 'create' }>, watch: RoutedWatch): void {
    const existing = this.#byNode.get(node);
    if (existing !== undefined) {
      existing.watches.set(request.watchId, watch);
      existing.handle.send(request);
      return;
    }
    const watches = new Map([[request.watchId, watch]]);
    let ended = false;
    const handle = this.#dialer.channel(node).openStream(
      rangeWatch,
      request,
      (message) => deliver(watches, message),
      (error) => {
        ended = true;
        if (this.#byNode.get(node)?.watches === watches) this.#byNode.delete(node);
        const cause = error ?? new ServiceError('UNAVAILABLE', 'the watch stream ended');
        const interrupted = [...watches.values()];
        watches.clear();
        for (const one of interrupted) one.interrupted(cause);
      },
    );
    // A stream that cannot be opened has ended by now.
    if (!ended) this.#byNode.set(node, { handle, watches, progressAsked: false });
  }

  cancel(node: number, watchId: number): void {
    const stream = this.#byNode.get(node);
    if (stream?.watches.delete(watchId)) stream.handle.send({ kind: 'cancel', watchId });
  }

  /** Asks for the progress of all watches on the node: once, however many of them ask in this turn. */
  progress(node: number): void {
    const stream = this.#byNode.get(node);
    if (stream === undefined || stream.progressAsked) return;
    stream.progressAsked = true;
    this.#clock.setImmediate(() => {
      stream.progressAsked = false;
      if (this.#byNode.get(node) === stream) stream.handle.send({ kind: 'progress' });
    });
  }
}

function deliver(watches: Map<number, RoutedWatch>, message: WatchMessage): void {
  const watch = watches.get(message.watchId);
  if (message.kind === 'ended') watches.delete(message.watchId);
  watch?.message(message);
}

/**
 * One watch, kept up over changes of leader and broken links.
 *
 * V1. `#next` is the first revision not yet delivered: every resumption starts there, so nothing is missed or
 *     repeated (traps 22).
 * V2. A paused watch holds nothing: it is taken back from the leader, and resumed from `#next` (history serves it).
 * V3. At most one attempt to begin is under way, and at most one watch id is this watch's: `#turn` names it, and what
 *     an earlier one still brings is ignored.
 */
export class RoutedWatch implements WatchControl {
  readonly #deps: WatchDeps;
  readonly #streams: WatchStreams;
  readonly #options: WatchOptions;
  readonly #listener: WatchListener;
  readonly #newId: () => number;
  #next: number;
  #created = false;
  #over = false;
  #paused = false;
  #attempts = 0;
  #node = 0;
  #watchId = 0;
  /** Grows with each attempt to begin, and when the watch is paused or cancelled (V3). */
  #turn = 0;

  constructor(
    deps: WatchDeps,
    streams: WatchStreams,
    watch: { options: WatchOptions; listener: WatchListener; newId: () => number },
  ) {
    this.#deps = deps;
    this.#streams = streams;
    this.#options = watch.options;
    this.#listener = watch.listener;
    this.#newId = watch.newId;
    this.#next = watch.options.startRevision;
  }

  start(): void {
    this.#deps.underWay.watches++;
    this.#begin();
  }

  #begin(): void {
    if (this.#over || this.#paused) return;
    const turn = ++this.#turn;
    const range = this.#deps.routes.find(kvRoutingKey(this.#options.key));
    if (range === undefined) return this.#again();
    const node = this.#deps.routes.leader(range.rangeId);
    if (node === 0) this.#ask(range, turn);
    else this.#open(range, node);
  }

  #ask(range: RangeDescriptor, turn: number): void {
    const { dialer, routes } = this.#deps;
    const node = range.replicas[this.#attempts % range.replicas.length]?.nodeId ?? 0;
    const options = { timeoutMs: INFO_TIMEOUT_MS };
    dialer.channel(node).call(rangeInfo, { rangeId: range.rangeId }, options, (_error, info) => {
      if (info !== undefined) routes.learnInfo(info, node);
      if (turn !== this.#turn) return;
      // Replicas that name each other are asked with pauses.
      if (info === undefined || info.leaderNode === 0 || this.#attempts > 2) return this.#again();
      this.#attempts++;
      this.#begin();
    });
  }

  #open(range: RangeDescriptor, node: number): void {
    this.#node = node;
    this.#watchId = this.#newId();
    const { noPut, noDelete, prevKv } = this.#options;
    this.#streams.open(
      node,
      {
        kind: 'create',
        watchId: this.#watchId,
        rangeId: range.rangeId,
        epoch: range.epoch,
        span: this.#span(),
        startRevision: this.#next,
        noPut,
        noDelete,
        prevKv,
      },
      this,
    );
  }

  #span(): Span {
    const { key, end } = this.#options;
    return { start: key, end: end ?? Buffer.concat([key, Buffer.from([0])]) };
  }

  message(message: WatchMessage): void {
    if (this.#over || this.#paused || message.watchId !== this.#watchId) return;
    switch (message.kind) {
      case 'created':
        this.#attempts = 0;
        if (this.#next === 0) this.#next = message.revision + 1;
        if (!this.#created) {
          this.#created = true;
          this.#listener.onCreated(message.revision);
        }
        return;
      case 'events':
        // V1. Repeats cannot come from one leader; this also holds if they did.
        if (message.revision < this.#next && message.events.length > 0) return;
        this.#next = Math.max(this.#next, message.revision + 1);
        this.#listener.onEvents(message.events, message.revision);
        return;
      case 'ended':
        return this.#ended(message);
    }
  }

  #ended(message: Extract<WatchMessage, { kind: 'ended' }>): void {
    const code = isErrorCode(message.code) ? message.code : 'INTERNAL';
    if (code === 'NOT_LEADER' || code === 'STALE_EPOCH' || code === 'RANGE_NOT_FOUND') {
      return this.interrupted(new ServiceError(code, message.message));
    }
    this.#end();
    this.#listener.onEnd(new ServiceError(code, message.message), message.compactRevision);
  }

  /** The leader or the way to it is gone: begin again where it stopped. */
  interrupted(_cause: ServiceError): void {
    const range = this.#deps.routes.find(kvRoutingKey(this.#options.key));
    if (range !== undefined) this.#deps.routes.distrust(range.rangeId, this.#node);
    this.#watchId = 0;
    this.#again();
  }

  #again(): void {
    if (this.#over || this.#paused) return;
    const turn = ++this.#turn;
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#attempts++, 6));
    const pauseMs = ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2));
    this.#deps.clock.setTimer(pauseMs, () => {
      if (turn === this.#turn) this.#begin();
    });
  }

  #takeBack(): void {
    this.#turn++;
    if (this.#watchId !== 0) this.#streams.cancel(this.#node, this.#watchId);
    this.#watchId = 0;
  }

  cancel(): void {
    if (this.#over) return;
    this.#end();
    this.#takeBack();
  }

  #end(): void {
    this.#deps.underWay.watches--;
    this.#over = true;
  }

  progress(): void {
    if (!this.#over && !this.#paused && this.#watchId !== 0) this.#streams.progress(this.#node);
  }

  pause(): void {
    // V2. A watch from "now" that has not begun yet has no place to resume from: let it begin first.
    if (this.#over || this.#paused || this.#next === 0) return;
    this.#paused = true;
    this.#takeBack();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#begin();
  }
}
