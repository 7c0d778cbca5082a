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
import {
  type LockEvent,
  type LockId,
  type LockNews,
  type LockQuery,
  type LockState,
  lockPrefix,
  lockSpan,
  nameAt,
  queryLocks,
} from '@remora/lock';
import { intersection } from '../state/bounds.ts';
import type { Spanned } from '../watch/span-index.ts';

type Events = Extract<LockNews, { readonly type: 'events' }>;

/** What a listener listens to: one lock, or the locks of a namespace within a span. */
export interface Listened {
  readonly namespace: string;
  /** The name of the one lock, or the common prefix of all names. */
  readonly name: Bytes;
  readonly single: boolean;
  readonly span: Span;
}

export interface ListenerSink {
  /** Returns false if the receiver is behind: stop until `drained`. */
  send(news: readonly LockNews[]): boolean;
  /** The listener has ended. */
  end(error: ServiceError): void;
}

export interface ListenerDeps {
  readonly engine: Engine;
  readonly clock: Clock;
  /** The revision of the state that is applied. */
  readonly revision: () => number;
}

/** A lower bound of how many named holders and waiters are still there; infinite if all were named. */
interface Named {
  readonly holders: number;
  readonly waiters: number;
}

/** Locks whose state is sent at a time: other work runs in between. */
const PAGE_LOCKS = 100;
/** Locks that are remembered while the receiver is behind; with more of them, the listing starts over. */
const MISSED_MAX = 1_000;
/** Locks for which not all were named (LL5); for any others, no names follow once the named ones have left. */
const PARTIAL_MAX = MISSED_MAX;

/**
 * A listener to locks of a range.
 *
 * LL1. For each lock the listener first receives the state, and then all events, in order and without gaps. If events
 *      have to be left out because the receiver is behind, the next message about that lock is its state.
 * LL2. States are sent in the order of names, some at a time. Nothing is sent about a lock whose turn is still to come.
 * LL3. Nothing is sent about free locks, unless it is the only lock or something was sent before; `begin` covers all of
 *      them at once.
 * LL4. Nothing is queued for a receiver that is behind, except the names of at most MISSED_MAX locks.
 * LL5. A state names only the first holders and waiters, and events add no names where some are missing. When all named
 *      ones have left, the state is sent once more, and names the next ones.
 */
export class LockListener implements Spanned {
  readonly key: Bytes;
  readonly end: Bytes;
  readonly sink: ListenerSink;
  readonly #deps: ListenerDeps;
  readonly #listened: Listened;
  /** LL2. The keys before this one were listed. */
  #upTo: Bytes;
  #after: Bytes = EMPTY_BYTES;
  #listing = false;
  /** The next page is about to be sent. */
  #scheduled = false;
  #blocked = false;
  #closed = false;
  #pending: Events[] = [];
  /** LL1. Locks with events that were left out; undefined if there are too many. */
  #missed: Map<string, LockId> | undefined = new Map();
  /** LL5. Locks of which not all holders or waiters were named. */
  readonly #partial = new Map<string, Named>();

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
    this.#partial.clear();
    if (single) this.#miss(span.start, { namespace, name });
    this.#send([{ type: 'begin', from: nameAt(namespace, span.start), to: nameAt(namespace, span.end) }]);
    this.#goOn();
  }

  close(): void {
    this.#closed = true;
  }

  /** Returns whether there is something to flush. */
  take(news: Events): boolean {
    const start = lockPrefix(news.lock);
    if (this.#listing && compareBytes(start, this.#upTo) >= 0) return false; // LL2
    if (this.#blocked) {
      this.#miss(start, news.lock);
      return false;
    }
    this.#pending.push(news);
    if (this.#partial.size > 0) this.#leave(start, news);
    return true;
  }

  flush(): void {
    const pending = this.#pending;
    if (pending.length === 0 || this.#closed) return;
    this.#pending = [];
    if (this.#blocked) {
      for (const { lock } of pending) this.#miss(lockPrefix(lock), lock);
      return;
    }
    this.#send(pending);
    this.#tellMissed(); // LL5
  }

  /** LL5. */
  #leave(start: Bytes, { lock, events }: Events): void {
    const key = binaryString(start);
    const named = this.#partial.get(key);
    if (named === undefined) return;
    const holders = named.holders - events.filter(endsHold).length;
    const waiters = named.waiters - events.filter(endsWait).length;
    if (holders > 0 && waiters > 0) this.#partial.set(key, { holders, waiters });
    else this.#miss(start, lock);
  }

  /** LL5. */
  #named(lock: LockId, state: LockState | undefined): void {
    const key = binaryString(lockPrefix(lock));
    this.#partial.delete(key);
    if (state === undefined || this.#partial.size >= PARTIAL_MAX) return;
    const { holders, holderCount, waiters, waiterCount } = state;
    if (holders.length === holderCount && waiters.length === waiterCount) return;
    this.#partial.set(key, {
      holders: holders.length < holderCount ? holders.length : Number.POSITIVE_INFINITY,
      waiters: waiters.length < waiterCount ? waiters.length : Number.POSITIVE_INFINITY,
    });
  }

  /** LL4. */
  #miss(start: Bytes, lock: LockId): void {
    if (this.#missed === undefined) return;
    if (this.#missed.size >= MISSED_MAX) this.#missed = undefined;
    else this.#missed.set(binaryString(start), { ...lock, name: copyBytes(lock.name) });
  }

  drained(): void {
    this.#blocked = false;
    this.flush(); // earlier events must not follow a later state
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
      if (shown.type !== 'show') continue;
      this.#named(lock, shown.state);
      this.#send([{ type: 'state', lock, revision, state: shown.state }]);
    }
  }

  #tellPage(): void {
    const { namespace, name: prefix, span } = this.#listened;
    const revision = this.#deps.revision();
    const after = this.#after;
    const page = this.#query({ type: 'list', namespace, prefix, after, limit: PAGE_LOCKS, allKinds: true });
    if (page.type !== 'list') return;
    const last = page.locks.at(-1)?.lock;
    for (const state of page.locks) this.#named(state.lock, state);
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
      this.flush(); // events of an entry that is not completely applied yet must not follow a later state
      this.#goOn();
    });
  }

  /** Also includes waiters whose wait is over, because their leaving is reported. */
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

function endsHold({ type }: LockEvent): boolean {
  return type === 'released' || type === 'expired' || type === 'forced';
}

function endsWait(event: LockEvent): boolean {
  return event.type === 'left' || ((event.type === 'acquired' || event.type === 'upgraded') && event.waited);
}
