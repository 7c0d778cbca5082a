import { binaryString, compareBytes, EMPTY_BYTES } from '@remora/base';
import { type LockEvent, type LockId, type LockNews, type LockQuery, type LockState, stateAfter } from '@remora/lock';
import { type PipeLockWatchRequest, pipeLockWatch, type Query } from '@remora/protocol';
import { toBytes } from '../kv/keys.ts';
import { object, signal, text } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { Subscription } from '../transport/subscription.ts';
import { printable } from '../values/printable.ts';

export interface LockEventsOptions {
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export const LOCK_EVENTS_OPTIONS = optionSet<LockEventsOptions>('events of a lock', { signal });

/** The state of a lock, or a change of it. */
export type LockWatchEvent =
  /** `state` is undefined when nobody holds the lock or waits for it. */
  | {
      readonly type: 'state';
      readonly lock: LockId;
      readonly revision: number;
      readonly state: LockState | undefined;
    }
  | (LockEvent & { readonly lock: LockId; readonly revision: number });

/** An event of a watch of several locks. */
export type LocksWatchEvent =
  | LockWatchEvent
  /**
   * Forget what was reported of the locks from the name `from` up to, but without, `to` (empty: no bound): it may be
   * out of date. The states of those that are held or waited for follow; the others are free.
   */
  | Extract<LockNews, { readonly type: 'begin' }>
  /** All states were reported; changes follow. */
  | { readonly type: 'live' };

/**
 * A watch of one lock or several, as an async iterator. End it by leaving the loop, by `close`, or by its `signal`.
 *
 * LE1. The state of a lock comes first, and then its changes, in order and without gaps, until its state comes again:
 *      after a lost connection, a change of leader, a split, or when the consumer was more than 10,000 events behind.
 *      The changes before that state are not reported.
 */
export class LockEvents<Event> extends Subscription<Event, PipeLockWatchRequest, readonly LockNews[]> {
  readonly #request: PipeLockWatchRequest;
  readonly #toEvents: (news: LockNews) => readonly Event[];

  /** `toEvents`: what a message means to the consumer. */
  constructor(
    requester: Requester,
    request: PipeLockWatchRequest,
    { signal: ending, toEvents }: LockEventsOptions & { readonly toEvents: (news: LockNews) => readonly Event[] },
  ) {
    super(requester, pipeLockWatch);
    this.#request = request;
    this.#toEvents = toEvents;
    this.begin(ending);
  }

  protected request(): PipeLockWatchRequest {
    return this.#request;
  }

  protected probe(): Query {
    const { namespace, name, single } = this.#request;
    const query: LockQuery = single
      ? { type: 'show', lock: { namespace, name }, allKinds: true }
      : { type: 'list', namespace, prefix: name, after: EMPTY_BYTES, limit: 1, allKinds: true };
    return { type: 'lock', query };
  }

  protected eventsOf(news: readonly LockNews[]): readonly Event[] {
    return news.flatMap(this.#toEvents);
  }
}

/** A watch of one lock. */
export function eventsOfLock(
  requester: Requester,
  { namespace, name }: LockId,
  options: LockEventsOptions,
): LockEvents<LockWatchEvent> {
  checkOptions(LOCK_EVENTS_OPTIONS, options);
  return new LockEvents(requester, { namespace, name, single: true }, { ...options, toEvents: lockWatchEvents });
}

/** A watch of all locks whose names begin with `name`. */
export function eventsOfLocks(
  requester: Requester,
  { namespace, name }: LockId,
  options: LockEventsOptions,
): LockEvents<LocksWatchEvent> {
  const toEvents = (news: LockNews): readonly LocksWatchEvent[] =>
    news.type === 'begin' || news.type === 'live' ? [printable(news)] : lockWatchEvents(news);
  return new LockEvents(requester, { namespace, name, single: false }, { ...options, toEvents });
}

/** The part of a message that is about one lock. */
export function lockWatchEvents(news: LockNews): readonly LockWatchEvent[] {
  if (news.type === 'state') return [printable(news)];
  if (news.type !== 'events') return [];
  const { lock, revision } = news;
  return news.events.map((event) => printable({ ...event, lock, revision }));
}

/** The states of locks, kept up to date from the events of a watch: each is what `Locks.show` would return. */
export class LockStates {
  readonly #states = new Map<string, LockState>();

  /** The state of a lock; undefined when nobody holds it or waits for it, as far as was reported. */
  get(lock: LockId): LockState | undefined {
    object(lock, 'a lock');
    const { namespace, name } = lock;
    text(namespace, 'the namespace of a lock');
    return this.#states.get(keyOf({ namespace, name: toBytes(name) }));
  }

  /** The states of all locks that are held or waited for. */
  values(): readonly LockState[] {
    return [...this.#states.values()];
  }

  /** Applies the next event. @throws ServiceError INVALID_ARGUMENT for anything but an event of a watch. */
  apply(event: LocksWatchEvent): void {
    object(event, 'an event');
    text(event.type, 'the type of an event');
    switch (event.type) {
      case 'begin':
        return this.#forget(event);
      case 'live':
        return;
      case 'state':
        return this.#set(event.lock, event.state);
      default:
        object(event.lock, 'the lock of an event');
        return this.#set(event.lock, stateAfter(event.lock, this.#states.get(keyOf(event.lock)), event));
    }
  }

  #set(lock: LockId, state: LockState | undefined): void {
    if (state === undefined) this.#states.delete(keyOf(lock));
    else this.#states.set(keyOf(lock), printable(state));
  }

  #forget({ from, to }: Extract<LocksWatchEvent, { type: 'begin' }>): void {
    for (const [key, { lock }] of this.#states) {
      const before = to.length === 0 || compareBytes(lock.name, to) < 0;
      if (before && compareBytes(lock.name, from) >= 0) this.#states.delete(key);
    }
  }
}

function keyOf({ namespace, name }: LockId): string {
  return `${namespace}\0${binaryString(name)}`;
}
