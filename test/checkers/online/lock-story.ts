/**
 * Checks what listeners receive about locks (`LockEvents` of the SDK): first a state, then events, until the next
 * state. It compares what several listeners received about the same lock, because a lock has only one history.
 *
 * Promises:
 * T1. In order, and once: what a listener receives comes after the state that it began with, and in the order of
 *     revisions.
 * T2. Complete and the same for all: between that state and the last thing that it received, a listener received
 *     everything that any other listener received, with the same content.
 * T3. The events lead to the states: if the events up to a revision are applied to an earlier state, the result is the
 *     state that some listener received at that revision. A state need not contain waiters whose time is over, nor
 *     those behind them.
 * T4. Everything received is possible: at most one holder has a lock exclusively, and a grant's version is the revision
 *     that granted it.
 * T5. First come, first served: a grant after waiting goes to the first waiter of the queue, and no grant passes a
 *     queue.
 */
import { isDeepStrictEqual } from 'node:util';
import { assert } from '@remora/base';
import { type LockEvent, type LockState, stateAfter, type Waiter } from '@remora/lock';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type StoryEvent =
  /** The state of the lock. What this listener receives from now on follows from it. */
  | {
      readonly type: 'state';
      readonly listener: string;
      readonly lock: string;
      readonly revision: number;
      readonly state: LockState | undefined;
    }
  | {
      readonly type: 'event';
      readonly listener: string;
      readonly lock: string;
      readonly revision: number;
      readonly event: LockEvent;
    }
  /** What it receives from now on follows from a state that it receives first. */
  | { readonly type: 'interrupted'; readonly listener: string; readonly lock: string };

/** What one listener received without an interruption. */
interface Chapter {
  readonly listener: string;
  readonly from: number;
  readonly state: LockState | undefined;
  /** The events of each revision. */
  readonly told: Map<number, LockEvent[]>;
  last: number;
}

interface Story {
  readonly lock: string;
  readonly chapters: Chapter[];
  /** By listener. */
  readonly open: Map<string, Chapter>;
}

export class LockStoryCheck implements Check<StoryEvent> {
  readonly name = 'lock story';
  readonly #stories = new Map<string, Story>();
  /** Events that listeners received, in total. */
  told = 0;

  observe(event: StoryEvent): readonly Finding[] {
    const story = this.#storyOf(event.lock);
    switch (event.type) {
      case 'interrupted':
        story.open.delete(event.listener);
        return NOTHING;
      case 'state': {
        const { listener, revision, state } = event;
        begin(story, { listener, from: revision, state: plain(state), told: new Map(), last: revision });
        return NOTHING;
      }
      case 'event':
        this.told++;
        return tell(story, event);
    }
  }

  finish(): readonly Finding[] {
    return [...this.#stories.values()].flatMap((story) => {
      const whole = wholeOf(story);
      return story.chapters.flatMap((chapter) => [...incomplete(story, chapter, whole), ...impossible(story, chapter)]);
    });
  }

  #storyOf(lock: string): Story {
    let story = this.#stories.get(lock);
    if (story === undefined) {
      story = { lock, chapters: [], open: new Map() };
      this.#stories.set(lock, story);
    }
    return story;
  }
}

function begin({ chapters, open }: Story, chapter: Chapter): Chapter {
  chapters.push(chapter);
  open.set(chapter.listener, chapter);
  return chapter;
}

/** T1. If a listener received no state of a lock at first, there was none: the lock was free. */
function tell(story: Story, { listener, lock, revision, event }: Extract<StoryEvent, { type: 'event' }>) {
  const chapter =
    story.open.get(listener) ??
    begin(story, { listener, from: revision - 1, state: undefined, told: new Map(), last: revision - 1 });
  const { last, from, told } = chapter;
  if (revision < last || revision <= from) {
    const what = `${listener} was told of ${lock} what happened at ${revision} (${event.type})`;
    return [violation('lock story: in order, and once', `${what}, after ${last} of a story that begins at ${from}`)];
  }
  chapter.last = revision;
  const events = told.get(revision) ?? [];
  told.set(revision, events);
  events.push(plain(event));
  return NOTHING;
}

/** The events of each revision, from the listener that received most of it, in the order of revisions. */
function wholeOf({ chapters }: Story): readonly (readonly [revision: number, events: readonly LockEvent[]])[] {
  const whole = new Map<number, readonly LockEvent[]>();
  for (const { told } of chapters) {
    for (const [revision, events] of told) {
      if (events.length > (whole.get(revision)?.length ?? 0)) whole.set(revision, events);
    }
  }
  return [...whole].sort(([a], [b]) => a - b);
}

/** T2. A listener that stopped may have received only part of the last revision. */
function* incomplete(
  { lock }: Story,
  { listener, from, last, told }: Chapter,
  whole: readonly (readonly [number, readonly LockEvent[]])[],
): Generator<Finding> {
  for (const [revision, events] of whole) {
    if (revision <= from || revision > last) continue;
    const own = told.get(revision) ?? [];
    const expected = revision === last ? events.slice(0, own.length) : events;
    if (isDeepStrictEqual(own, expected)) continue;
    yield violation(
      'lock story: complete, and the same for all',
      `of ${lock}, ${listener} was told from ${from} to ${last}, and of ${revision} ${textOf(own)}; others ${textOf(events)}`,
    );
  }
}

/** T3, T4, T5. */
function* impossible({ lock, chapters }: Story, chapter: Chapter): Generator<Finding> {
  const { listener, from, last, told } = chapter;
  const others = chapters
    .filter((other) => other !== chapter && other.from >= from && other.from < last)
    .sort((a, b) => a.from - b.from);
  let state = chapter.state;
  let next = 0;
  const differing = function* (upTo: number): Generator<Finding> {
    for (; (others[next]?.from ?? upTo) < upTo; next++) {
      const other = others[next];
      assert(other !== undefined, 'there is another one');
      const what = difference(state, other.state);
      if (what === '') continue;
      const who = `${listener} was told from ${from} on, and ${other.listener} at ${other.from}`;
      yield violation('lock story: the events make the states', `of ${lock}, ${who}: ${what}`);
    }
  };
  for (const [revision, events] of told) {
    yield* differing(revision);
    for (const event of events) {
      const wrong = wrongOf(state, revision, event);
      if (wrong !== '') yield violation('lock story: it can be', `${lock} at ${revision}, by ${listener}: ${wrong}`);
      const past = overtaken(state, event);
      if (past !== '')
        yield violation('lock story: first come, first served', `${lock} at ${revision}, by ${listener}: ${past}`);
      state = stateAfter(NAMELESS, state, event);
    }
  }
  yield* differing(last);
}

const NAMELESS = { namespace: '', name: new Uint8Array() };

/** T4. */
function wrongOf(state: LockState | undefined, revision: number, event: LockEvent): string {
  if (event.type !== 'acquired' && event.type !== 'upgraded' && event.type !== 'downgraded') return '';
  const { holder } = event;
  if (holder.version !== revision) return `a grant with version ${holder.version}`;
  const others = (state?.holders ?? []).filter(({ owner }) => !isSame(owner, holder.owner));
  const excluded = others.find(({ mode }) => mode !== holder.mode || mode === 'exclusive');
  return excluded === undefined
    ? ''
    : `${holder.owner.id} (${holder.mode}) beside ${excluded.owner.id} (${excluded.mode})`;
}

/** T5. */
function overtaken(state: LockState | undefined, event: LockEvent): string {
  if (event.type !== 'acquired') return '';
  const first = (state?.waiters ?? []).find(({ mode }) => mode !== 'upgrade');
  if (first === undefined) return '';
  const { id } = event.holder.owner;
  if (!event.waited) return `${id} did not wait, and ${first.owner.id} did`;
  return isSame(first.owner, event.holder.owner) ? '' : `${id} was granted before ${first.owner.id}`;
}

/** T3. Empty: `told` equals `made`. */
function difference(made: LockState | undefined, told: LockState | undefined): string {
  const [a, b] = [factsOf(made), factsOf(told)];
  if (!isDeepStrictEqual(a, b)) return `by its events it is ${JSON.stringify(a)}, and it was told ${JSON.stringify(b)}`;
  const queue = (made?.waiters ?? []).map(nameOf);
  const named = (told?.waiters ?? []).map(nameOf);
  const knowsAll = queue.length === (made?.waiterCount ?? 0);
  const both = (names: readonly string[]) => names.filter((name) => queue.includes(name) && named.includes(name));
  const isMissed = knowsAll && named.some((name) => !queue.includes(name));
  if (!isMissed && isDeepStrictEqual(both(queue), both(named))) return '';
  return `by its events ${queue} wait, and it was told ${named}`;
}

function factsOf(state: LockState | undefined): object {
  if (state === undefined) return { holders: [], waiterCount: 0, permits: 0, capacity: 0 };
  const { holders, waiterCount, permits, capacity, keptData, forced } = state;
  const sorted = holders.toSorted((a, b) => (a.owner.id < b.owner.id ? -1 : 1));
  return plain({ holders: sorted, waiterCount, permits, capacity, keptData, forced });
}

function nameOf({ owner, mode }: Waiter): string {
  return `${owner.id} (${mode})`;
}

function isSame(a: Waiter['owner'], b: Waiter['owner']): boolean {
  return a.id === b.id && isDeepStrictEqual(a.session, b.session);
}

function textOf(events: readonly LockEvent[]): string {
  return events.length === 0 ? 'nothing' : JSON.stringify(events);
}

/** As in a journal: lease numbers and bytes become texts, and absent fields are removed. */
export function plain<T>(value: T): T {
  if (value === undefined) return value;
  return JSON.parse(
    JSON.stringify(value, (_key, part: unknown) =>
      typeof part === 'bigint' ? String(part) : part instanceof Uint8Array ? Buffer.from(part).toString('hex') : part,
    ),
  );
}
