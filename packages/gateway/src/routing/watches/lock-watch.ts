import type { Span } from '@remora/base';
import { type LockNews, lockSpan, namespaceSpan } from '@remora/lock';
import type { LockWatchListener, LockWatchOptions, WatchControl } from '../../backend.ts';
import type { BackendInFlight } from '../calls/in-flight.ts';
import { RoutedLockWatch, type RoutedLockWatchDeps } from './routed-lock-watch.ts';

export interface LockWatchDeps extends RoutedLockWatchDeps {
  readonly inFlight: BackendInFlight;
}

interface Part {
  readonly span: Span;
  readonly watch: RoutedLockWatch;
  /** Whether the states of all its locks were delivered. */
  live: boolean;
}

/**
 * One watch of a client on locks that may be in several ranges.
 *
 * LM1. Each part delivers the events of its own locks; events of different ranges have no order among them.
 * LM2. When a range is split, its part becomes several parts, each of which starts again with the states.
 * LM3. `live` is delivered when all parts are live.
 * LM4. A paused watch has no streams, and starts again with the states when it is resumed.
 */
export class LockWatch implements Omit<WatchControl, 'progress'> {
  readonly #deps: LockWatchDeps;
  readonly #options: LockWatchOptions;
  readonly #listener: LockWatchListener;
  readonly #span: Span;
  #parts: readonly Part[] = [];
  #paused = false;
  #over = false;

  constructor(deps: LockWatchDeps, options: LockWatchOptions, listener: LockWatchListener) {
    const { namespace, name, single } = options;
    this.#deps = deps;
    this.#options = options;
    this.#listener = listener;
    this.#span = single ? lockSpan({ namespace, name }) : namespaceSpan(namespace, name);
  }

  /** The first events come in a later turn, when the caller has the watch. */
  start(): void {
    this.#deps.inFlight.watches++;
    this.#deps.clock.setImmediate(() => this.#begin());
  }

  #begin(): void {
    if (this.#over || this.#paused) return;
    this.#parts = [this.#newPart(this.#span)];
    for (const { watch } of this.#parts) watch.start();
  }

  #newPart(span: Span): Part {
    const watch = new RoutedLockWatch(
      this.#deps,
      { ...this.#options, span },
      {
        onEvents: (events) => this.#onEvents(part, events),
        onApart: (spans) => this.#onApart(part, spans),
      },
    );
    const part: Part = { span, watch, live: false };
    return part;
  }

  #onEvents(part: Part, events: readonly LockNews[]): void {
    for (const { type } of events) {
      if (type === 'begin') part.live = false;
      else if (type === 'live') part.live = true;
    }
    const others = events.filter(({ type }) => type !== 'live');
    const live = others.length < events.length && this.#parts.every((one) => one.live);
    if (live) this.#listener([...others, { type: 'live' }]);
    else if (others.length > 0) this.#listener(others);
  }

  /** LM2. */
  #onApart(part: Part, spans: readonly Span[]): void {
    const instead = spans.map((span) => this.#newPart(span));
    this.#parts = this.#parts.flatMap((one) => (one === part ? instead : [one]));
    for (const { watch } of instead) watch.start();
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#deps.inFlight.watches--;
    this.#leaveAll();
  }

  pause(): void {
    this.#paused = true;
    this.#leaveAll();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#begin();
  }

  #leaveAll(): void {
    for (const { watch } of this.#parts) watch.cancel();
    this.#parts = [];
  }
}
