import {
  type Bytes,
  binaryString,
  type Clock,
  compareBytes,
  copyBytes,
  EMPTY_BYTES,
  type Engine,
  type ServiceError,
  type Span,
} from '@remora/base';
import { type LockId, type LockNews, type LockQuery, lockPrefix, lockSpan, nameAt, queryLocks } from '@remora/lock';
import { intersection } from '../state/bounds.ts';
import type { Spanned } from '../watch/span-index.ts';

type Events = Extract<LockNews, { readonly type: 'events' }>;

/** What is listened to: one lock, or those of a namespace that lie in a span. */
export interface Listened {
  readonly namespace: string;
  /** The name of the one, or what all names begin with. */
  readonly name: Bytes;
  readonly single: boolean;
  readonly span: Span;
}

export interface ListenerSink {
  /** False when the other side is behind: stop until `drained`. */
  send(news: readonly LockNews[]): boolean;
  /** It listens no longer. */
  end(error: ServiceError): void;
}

export interface ListenerDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  /** The revision of the state that is applied. */
  readonly revision: () => number;
}

/** Locks whose state is told at a time: others are served in between. */
const PAGE_LOCKS = 100;
/** Locks that are remembered while the other side is behind; with more of them it begins anew. */
const MISSED_MAX = 1_000;

/**
 * One who listens to locks of a range.
 *
 * LL1. Of each lock it is told first how it is, and then all that happens to it, in order, with nothing left out. Where
 *      something has to be left out, because it is behind, the next thing it hears of that lock is how it is.
 * LL2. States are told in the order of names, some at a time. Of a lock whose turn is still to come nothing is said.
 * LL3. Of locks that are free nothing is said, unless it is the only one or something was said before; `begin` says so of
 *      all at once.
 * LL4. Nothing is queued for one who is behind, but the names of at most MISSED_MAX locks.
 */
export class LockListener implements Spanned {
  readonly key: Bytes;
  readonly end: Bytes;
  readonly sink: ListenerSink;
  readonly #deps: ListenerDeps;
  readonly #listened: Listened;
  /** LL2. The keys before it were listed. */
  #upTo: Bytes;
  #after: Bytes = EMPTY_BYTES;
  #listing = false;
  /** The next page is about to be told. */
  #scheduled = false;
  #blocked = false;
  #closed = false;
  #pending: Events[] = [];
  /** LL1. Locks of which something was left out; undefined when they are too many. */
  #missed: Map<string, LockId> | undefined = new Map();

  constructor(deps: ListenerDeps, listened: Listened, sink: ListenerSink) {
    this.#deps = deps;
    this.#listened = listened;
    this.sink = sink;
    this.key = listened.span.start;
    this.end = listened.span.end;
    this.#upTo = this.key;
  }

  get span(): Span {
    return this.#listened.span;
  }

  begin(): void {
    const { namespace, name, single, span } = this.#listened;
    this.#upTo = span.start;
    this.#after = EMPTY_BYTES;
    this.#listing = !single;
    this.#missed = new Map();
    this.#pending = [];
    if (single) this.#miss(span.start, { namespace, name });
    this.#send([{ type: 'begin', from: nameAt(namespace, span.start), to: nameAt(namespace, span.end) }]);
    this.#goOn();
  }

  close(): void {
    this.#closed = true;
  }

  /** Whether there is something to flush. */
  take(news: Events): boolean {
    const start = lockPrefix(news.lock);
    if (this.#listing && compareBytes(start, this.#upTo) >= 0) return false; // LL2
    if (this.#blocked) {
      this.#miss(start, news.lock);
      return false;
    }
    this.#pending.push(news);
    return true;
  }

  flush(): void {
    const pending = this.#pending;
    if (pending.length === 0 || this.#closed) return;
    this.#pending = [];
    if (!this.#blocked) this.#send(pending);
    else for (const { lock } of pending) this.#miss(lockPrefix(lock), lock);
  }

  /** LL4. */
  #miss(start: Bytes, lock: LockId): void {
    if (this.#missed === undefined) return;
    if (this.#missed.size >= MISSED_MAX) this.#missed = undefined;
    else this.#missed.set(binaryString(start), { ...lock, name: copyBytes(lock.name) });
  }

  drained(): void {
    this.#blocked = false;
    this.flush(); // what came before is not told behind a later state
    if (this.#missed === undefined) this.begin();
    else this.#goOn();
  }

  #goOn(): void {
    if (this.#closed || this.#blocked) return;
    this.#tellMissed();
    if (this.#listing && !this.#blocked && !this.#scheduled) this.#tellPage();
  }

  /** LL1. */
  #tellMissed(): void {
    const revision = this.#deps.revision();
    for (const [name, lock] of this.#missed ?? []) {
      if (this.#blocked) return;
      this.#missed?.delete(name);
      const shown = this.#query({ type: 'show', lock, allKinds: true });
      if (shown.type === 'show') this.#send([{ type: 'state', lock, revision, state: shown.state }]);
    }
  }

  #tellPage(): void {
    const { namespace, name: prefix, span } = this.#listened;
    const revision = this.#deps.revision();
    const after = this.#after;
    const page = this.#query({ type: 'list', namespace, prefix, after, limit: PAGE_LOCKS, allKinds: true });
    if (page.type !== 'list') return;
    const last = page.locks.at(-1)?.lock;
    const news = page.locks.map((state): LockNews => ({ type: 'state', lock: state.lock, revision, state }));
    if (last !== undefined && page.more) {
      this.#after = last.name;
      this.#upTo = lockSpan(last).end;
      if (this.#send(news)) this.#schedule();
      return;
    }
    this.#listing = false;
    this.#upTo = span.end;
    this.#send([...news, { type: 'live' }]);
  }

  #schedule(): void {
    this.#scheduled = true;
    this.#deps.clock.setImmediate(() => {
      this.#scheduled = false;
      this.#goOn();
    });
  }

  /** Those whose wait is over are shown as well, as they are told of when they leave. */
  #query(query: LockQuery) {
    const { engine } = this.#deps;
    const view = {
      timeMs: 0,
      get: (key: Bytes) => engine.get(key),
      scan: (start: Bytes, end: Bytes, limit: number) => {
        const span = intersection({ start, end }, this.#listened.span);
        return span === undefined ? [] : engine.scanResident({ ...span, limit });
      },
    };
    return queryLocks(view, query);
  }

  #send(news: readonly LockNews[]): boolean {
    if (!this.sink.send(news)) this.#blocked = true;
    return !this.#blocked;
  }
}
