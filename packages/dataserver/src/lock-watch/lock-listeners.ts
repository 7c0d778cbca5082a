import { LazySet, type ServiceError, type Span } from '@remora/base';
import { type LockEvent, type LockId, type LockNews, lockPrefix } from '@remora/lock';
import type { LockAudience } from '../state/effects.ts';
import { SpanIndex } from '../watch/span-index.ts';
import { type Listened, type ListenerDeps, type ListenerSink, LockListener } from './lock-listener.ts';

/**
 * The listeners to the locks of one range, at its leader. Without listeners, a command only compares a number.
 *
 * Lock events are not stored: a listener begins with the current state, and continues with new events
 * (lock-listener.ts).
 */
export class LockListeners implements LockAudience {
  readonly #deps: ListenerDeps;
  readonly #index = new SpanIndex<LockListener>();
  readonly #all = new LazySet<LockListener>();
  readonly #touched = new LazySet<LockListener>();

  constructor(deps: ListenerDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Starts a listener at once: the applied state has to be current. */
  add(listened: Listened, sink: ListenerSink): LockListener {
    const listener = new LockListener(this.#deps, listened, sink);
    this.#all.add(listener);
    this.#index.add(listener);
    listener.begin();
    return listener;
  }

  remove(listener: LockListener): void {
    if (!this.#all.delete(listener)) return;
    this.#index.remove(listener);
    this.#touched.delete(listener);
    listener.close();
  }

  /** Ends the listeners whose locks `which` picks: they have to listen elsewhere. */
  endAll(error: ServiceError, which: (span: Span) => boolean = () => true): void {
    for (const listener of [...this.#all]) {
      if (!which(listener.span)) continue;
      this.remove(listener);
      listener.sink.end(error);
    }
  }

  wants(lock: LockId): boolean {
    if (this.#all.size === 0) return false;
    let wanted = false;
    this.#index.forEach(lockPrefix(lock), () => {
      wanted = true;
    });
    return wanted;
  }

  publish(lock: LockId, revision: number, events: readonly LockEvent[]): void {
    const news: LockNews = { type: 'events', lock, revision, events };
    this.#index.forEach(lockPrefix(lock), (listener) => {
      if (listener.take(news)) this.#touched.add(listener);
    });
  }

  /** Sends what was published since the last call; called when an entry has been applied completely. */
  flush(): void {
    if (this.#touched.size === 0) return;
    for (const listener of this.#touched) listener.flush();
    this.#touched.clear();
  }
}
