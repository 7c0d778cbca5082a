import { type Clock, isErrorCode, type Random, ServiceError, type Span } from '@remora/base';
import {
  type KvEvent,
  type RangeDescriptor,
  type RpcDialer,
  rangeInfo,
  type WatchCreate,
  type WatchMessage,
} from '@remora/protocol';
import { plainKeys } from '../routes/request-keys.ts';
import type { Route } from '../routes/route-map.ts';
import type { Routes } from '../routes/routes.ts';
import type { StreamedWatch, WatchStreams } from './watch-streams.ts';

export interface RoutedWatchDeps {
  readonly dialer: RpcDialer;
  readonly routes: Routes;
  readonly clock: Clock;
  readonly random: Random;
  readonly streams: WatchStreams;
}

/** What to watch: a span of routing keys, from a revision on; 0: from the next change on. */
export interface WatchPart extends Pick<WatchCreate, 'noPut' | 'noDelete' | 'prevKv' | 'startRevision'> {
  readonly span: Span;
}

export interface PartListener {
  /** Called each time that the watch has started or resumed. */
  onCreated(revision: number): void;
  onEvents(events: readonly KvEvent[], revision: number): void;
  /** Answers `RoutedWatch.ask`. */
  onProgress(revision: number): void;
  /** The last call: the keys are in several ranges. Watch these parts instead. */
  onApart(parts: readonly Route[]): void;
  /** The last call: the watch has failed. */
  onEnd(error: ServiceError, compactRevision: number): void;
}

const INFO_TIMEOUT_MS = 500;
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/**
 * A watch of keys that are in one range. It resumes after changes of leader and broken links.
 *
 * V1. `next` is the first revision not yet delivered. Every resumption starts there, so no event is missed or repeated
 *     (traps 22).
 * V2. A paused watch holds no events: it is cancelled at the leader, and resumes from `next` (from history).
 * V3. At most one attempt to start is in flight, and at most one watch id belongs to this watch. `#turn` names the
 *     present one; messages of earlier ones are ignored.
 * V4. The leader that was asked answers `ask` once, with the answer to that question or a later one. A question ends
 *     with the attempt in which it was asked: the listener asks again when the watch has started again.
 */
export class RoutedWatch implements StreamedWatch {
  readonly #deps: RoutedWatchDeps;
  readonly #part: WatchPart;
  readonly #listener: PartListener;
  #next: number;
  #over = false;
  #paused = false;
  #attempts = 0;
  #node = 0;
  #rangeId = 0;
  #watchId = 0;
  /** Grows with each attempt to start, and when the watch is paused or cancelled (V3). */
  #turn = 0;
  /** V4. The question without an answer; 0: none. */
  #asked = 0;

  constructor(deps: RoutedWatchDeps, part: WatchPart, listener: PartListener) {
    this.#deps = deps;
    this.#part = part;
    this.#listener = listener;
    this.#next = part.startRevision;
  }

  /** V1. 0 until a watch from the next change on has started. */
  get next(): number {
    return this.#next;
  }

  get paused(): boolean {
    return this.#paused;
  }

  start(): void {
    this.#begin();
  }

  #begin(): void {
    if (this.#over || this.#paused) return;
    const turn = ++this.#turn;
    const { routes } = this.#deps;
    const parts = routes.covering(this.#part.span);
    const [route] = parts ?? [];
    if (parts === undefined || route === undefined) {
      routes.requestRefresh();
      return this.#again();
    }
    if (parts.length > 1) {
      this.#over = true;
      return this.#listener.onApart(parts);
    }
    const node = routes.leader(route.range.rangeId);
    if (node === 0) this.#ask(route.range, turn);
    else this.#open(route.range, node);
  }

  #ask(range: RangeDescriptor, turn: number): void {
    const { dialer, routes } = this.#deps;
    const node = range.replicas[this.#attempts % range.replicas.length]?.nodeId ?? 0;
    const options = { timeoutMs: INFO_TIMEOUT_MS };
    dialer.channel(node).call(rangeInfo, { rangeId: range.rangeId }, options, (error, info) => {
      if (info !== undefined) routes.learnInfo(info, node);
      else if (error !== undefined) routes.learnMoved(error);
      if (turn !== this.#turn) return;
      // Two replicas may name each other: then each further question follows a pause.
      if (info === undefined || info.leaderNode === 0 || this.#attempts > 2) return this.#again();
      this.#attempts++;
      this.#begin();
    });
  }

  #open({ rangeId, epoch }: RangeDescriptor, node: number): void {
    const { streams } = this.#deps;
    const { noPut, noDelete, prevKv, span } = this.#part;
    this.#node = node;
    this.#rangeId = rangeId;
    this.#asked = 0; // V4
    this.#watchId = streams.newId();
    const { key, end } = plainKeys(span);
    streams.open(
      node,
      {
        ...{ kind: 'create', watchId: this.#watchId, rangeId, epoch, noPut, noDelete, prevKv },
        span: { start: key, end },
        startRevision: this.#next,
      },
      this,
    );
  }

  message(message: WatchMessage): void {
    if (this.#over || this.#paused || message.watchId !== this.#watchId) return;
    switch (message.kind) {
      case 'created':
        this.#attempts = 0;
        if (this.#next === 0) this.#next = message.revision + 1;
        return this.#listener.onCreated(message.revision);
      case 'events':
        // V1. One leader never repeats events; this would hold even if it did.
        if (message.revision < this.#next && message.events.length > 0) return;
        this.#next = Math.max(this.#next, message.revision + 1);
        return this.#listener.onEvents(message.events, message.revision);
      case 'progress':
        this.#next = Math.max(this.#next, message.revision + 1);
        if (this.#asked === 0 || message.question < this.#asked) {
          return this.#listener.onEvents([], message.revision);
        }
        this.#asked = 0;
        return this.#listener.onProgress(message.revision);
      case 'ended':
        return this.#ended(message);
    }
  }

  #ended(message: Extract<WatchMessage, { kind: 'ended' }>): void {
    const code = isErrorCode(message.code) ? message.code : 'INTERNAL';
    if (code === 'NOT_LEADER') return this.interrupted();
    if (code === 'UNAVAILABLE') return this.#later(); // the range is being merged
    if (code === 'STALE_EPOCH' || code === 'RANGE_NOT_FOUND') return this.#moved(message.ranges);
    this.#over = true;
    this.#listener.onEnd(new ServiceError(code, message.message), message.compactRevision);
  }

  /** Keys of the watch have moved to another range. The node that says so still leads this one. */
  #moved(ranges: readonly RangeDescriptor[] = []): void {
    const { routes } = this.#deps;
    if (ranges.length === 0) {
      routes.requestRefresh();
      return this.interrupted();
    }
    // Another watch may have learned the same before. If the routes led nowhere in an earlier attempt, ask the master.
    if (!routes.learnRanges(ranges) && this.#attempts > 0) routes.requestRefresh();
    this.#later();
  }

  /** The leader or the link to it has failed: start again at `next`. */
  interrupted(): void {
    this.#deps.routes.forgetLeader(this.#rangeId, this.#node);
    this.#later();
  }

  #later(): void {
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

  #cancelAtLeader(): void {
    this.#turn++;
    if (this.#watchId !== 0) this.#deps.streams.cancel(this.#node, this.#watchId);
    this.#watchId = 0;
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelAtLeader();
  }

  /** Asks for an `onEvents` up to what the range has closed by now; repeats a question without an answer (V4). */
  urge(): void {
    if (this.#reachable) this.#deps.streams.progress(this.#node);
  }

  /** Asks for one `onProgress`. It has no effect before `onCreated`: the listener asks then (V4). */
  ask(): void {
    if (this.#reachable) this.#asked = this.#deps.streams.progress(this.#node);
  }

  get #reachable(): boolean {
    return !this.#over && !this.#paused && this.#watchId !== 0;
  }

  pause(): void {
    // V2. A watch from the next change on has no revision to resume from before it has started.
    if (this.#over || this.#paused || this.#next === 0) return;
    this.#paused = true;
    this.#cancelAtLeader();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#begin();
  }
}
