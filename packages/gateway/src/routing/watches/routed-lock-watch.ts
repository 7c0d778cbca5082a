import type { Clock, Random, ServiceError, Span } from '@remora/base';
import type { LockNews } from '@remora/lock';
import { type RangeDescriptor, type RpcDialer, rangeLockWatch, type StreamHandle } from '@remora/protocol';
import type { LockWatchOptions } from '../../backend.ts';
import type { LeaderSearch } from '../routes/leader-search.ts';
import type { Routes } from '../routes/routes.ts';

export interface RoutedLockWatchDeps {
  readonly dialer: RpcDialer;
  readonly routes: Routes;
  readonly search: LeaderSearch;
  readonly clock: Clock;
  readonly random: Random;
}

/** What to watch, and the part of it in one range, in routing keys. */
export interface LockWatchPart extends LockWatchOptions {
  readonly span: Span;
}

export interface LockPartListener {
  onEvents(events: readonly LockNews[]): void;
  /** The last call: the locks are in several ranges. Watch these parts instead. */
  onApart(spans: readonly Span[]): void;
}

const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/**
 * A watch on locks that are in one range. After a change of leader or a broken link it starts again with the states of
 * the locks, as ranges keep no history of lock events.
 *
 * There is at most one stream, search or pause at a time. `#turn` names it; what an earlier one brings is ignored.
 */
export class RoutedLockWatch {
  readonly #deps: RoutedLockWatchDeps;
  readonly #part: LockWatchPart;
  readonly #listener: LockPartListener;
  #turn = 0;
  #attempts = 0;
  #stream: StreamHandle<unknown> | undefined;
  #stopSearch: (() => void) | undefined;

  constructor(deps: RoutedLockWatchDeps, part: LockWatchPart, listener: LockPartListener) {
    this.#deps = deps;
    this.#part = part;
    this.#listener = listener;
  }

  start(): void {
    const turn = ++this.#turn;
    const { routes, search } = this.#deps;
    const { span } = this.#part;
    const parts = routes.covering(span);
    const [route] = parts ?? [];
    if (parts === undefined || route === undefined) {
      routes.requestRefresh();
      return this.#again();
    }
    if (parts.length > 1) return this.#listener.onApart(parts.map(({ start, end }) => ({ start, end })));
    const { range } = route;
    const node = routes.leader(range.rangeId);
    if (node !== 0) return this.#open(range, node);
    this.#stopSearch = search.wait(range, span.start, () => {
      if (turn === this.#turn) this.start();
    });
  }

  #open({ rangeId, epoch }: RangeDescriptor, node: number): void {
    const turn = this.#turn;
    const { namespace, name, single, span } = this.#part;
    const stream = this.#deps.dialer.channel(node).openStream(
      rangeLockWatch,
      { rangeId, epoch, namespace, name, single, span },
      (events) => {
        if (turn !== this.#turn) return;
        this.#attempts = 0;
        this.#listener.onEvents(events);
      },
      (error) => {
        if (turn === this.#turn) this.#ended(rangeId, node, error);
      },
    );
    if (turn === this.#turn) this.#stream = stream;
    else stream.cancel();
  }

  /** The leader or the link to it has failed, or the range no longer has all of the locks. */
  #ended(rangeId: number, node: number, error: ServiceError | undefined): void {
    const { routes } = this.#deps;
    this.#stream = undefined;
    if (error !== undefined) routes.learnMoved(error);
    routes.forgetLeader(rangeId, node);
    this.#again();
  }

  #again(): void {
    const turn = ++this.#turn;
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#attempts++, 6));
    const pauseMs = ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2));
    this.#deps.clock.setTimer(pauseMs, () => {
      if (turn === this.#turn) this.start();
    });
  }

  cancel(): void {
    this.#turn++;
    this.#stopSearch?.();
    this.#stream?.cancel();
    this.#stream = undefined;
  }
}
