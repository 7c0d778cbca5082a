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

/** What is watched: keys by their routing keys, from a revision on; 0: from now on. */
export interface WatchPart extends Pick<WatchCreate, 'noPut' | 'noDelete' | 'prevKv' | 'startRevision'> {
  readonly span: Span;
}

export interface PartListener {
  /** Told each time that the watch has begun. */
  onCreated(revision: number): void;
  onEvents(events: readonly KvEvent[], revision: number): void;
  /** Answers `RoutedWatch.ask`. */
  onProgress(revision: number): void;
  /** The keys are in several ranges, and nothing is watched any more: these parts are to be watched instead. */
  onApart(parts: readonly Route[]): void;
  /** Final. */
  onEnd(error: ServiceError, compactRevision: number): void;
}

const INFO_TIMEOUT_MS = 500;
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/**
 * A watch of keys that are in one range, kept up over changes of leader and broken links.
 *
 * V1. `next` is the first revision not yet delivered: every resumption starts there, so nothing is missed or
 *     repeated (traps 22).
 * V2. A paused watch holds nothing: it is taken back from the leader, and resumed from `next` (history serves it).
 * V3. At most one attempt to begin is under way, and at most one watch id is this watch's: `#turn` names it, and what
 *     an earlier one still brings is ignored.
 * V4. `ask` is answered by the leader that was asked, to that question or a later one, and once. A question dies with
 *     the attempt that it was asked in: the listener asks again when the watch has begun again.
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
  /** Grows with each attempt to begin, and when the watch is paused or cancelled (V3). */
  #turn = 0;
  /** V4. The question that is to be answered; 0: none. */
  #asked = 0;

  constructor(deps: RoutedWatchDeps, part: WatchPart, listener: PartListener) {
    this.#deps = deps;
    this.#part = part;
    this.#listener = listener;
    this.#next = part.startRevision;
  }

  /** V1. 0 until a watch from now on has begun. */
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
      routes.doubt();
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
      // Replicas that name each other are asked with pauses.
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
        // V1. Repeats cannot come from one leader; this also holds if they did.
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
    if (code === 'UNAVAILABLE') return this.#later(); // its range is being merged
    if (code === 'STALE_EPOCH' || code === 'RANGE_NOT_FOUND') return this.#moved(message.ranges);
    this.#over = true;
    this.#listener.onEnd(new ServiceError(code, message.message), message.compactRevision);
  }

  /** Its keys, or some of them, are another range's now; who leads this one is not in doubt if it could say that. */
  #moved(ranges: readonly RangeDescriptor[] = []): void {
    const { routes } = this.#deps;
    if (ranges.length === 0) {
      routes.doubt();
      return this.interrupted();
    }
    // Another watch may have learned it from the same range; if it led nowhere there, the master knows more.
    if (!routes.learnRanges(ranges) && this.#attempts > 0) routes.doubt();
    this.#later();
  }

  /** The leader or the way to it is gone: begin again where it stopped. */
  interrupted(): void {
    this.#deps.routes.distrust(this.#rangeId, this.#node);
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

  #takeBack(): void {
    this.#turn++;
    if (this.#watchId !== 0) this.#deps.streams.cancel(this.#node, this.#watchId);
    this.#watchId = 0;
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#takeBack();
  }

  /** Asks for an `onEvents` up to what the range has closed by now; repeats a question that is not answered (V4). */
  urge(): void {
    if (this.#reachable) this.#deps.streams.progress(this.#node);
  }

  /** Asks for one `onProgress`. Nothing comes of it before `onCreated`: the listener asks then (V4). */
  ask(): void {
    if (this.#reachable) this.#asked = this.#deps.streams.progress(this.#node);
  }

  get #reachable(): boolean {
    return !this.#over && !this.#paused && this.#watchId !== 0;
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
