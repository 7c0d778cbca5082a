/**
 * Checks whether watches receive what happened to their keys: all of it, in order, once (design §10).
 *
 * Promises:
 * W1. Order: revisions never decrease. After progress at P, only revisions above P follow.
 * W2. No repeats: a key's event of a revision comes once, over all resumptions. (A watch that resumes at an earlier
 *     revision has requested the events from there again.)
 * W3. Complete: once an event of revision R has come, all changes below R have come. After progress at P, or at the
 *     end, those up to that revision have come as well. Only a compaction causes a gap.
 * W4. True: an event reports what happened, and the same to all watches. A watch receives nothing that it did not
 *     request.
 * W5. "Compacted" is answered only if an event that was still to come may be gone. The answer names a revision for
 *     which a compaction was requested.
 *
 * What happened is known from `changed` (from the state machine, or from acknowledged writes, in any order) and from
 * the events of other watches. Keys are texts with the order of their bytes (latin1).
 */
import { assert } from '@remora/base';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export interface Change {
  readonly revision: number;
  readonly key: string;
  readonly kind: 'put' | 'delete';
  /** For a put whose value is known. */
  readonly value?: string;
}

export interface WatchSpan {
  readonly start: string;
  /** Undefined: only the key `start`. Empty: no end. */
  readonly end: string | undefined;
  readonly noPut?: boolean;
  readonly noDelete?: boolean;
}

export type WatchEvent =
  | ({ readonly type: 'changed' } & Change)
  /** Changes below this revision may be forgotten from now on. Sent when the compaction is requested. */
  | { readonly type: 'compaction'; readonly revision: number }
  | ({ readonly type: 'opened'; readonly watch: string; readonly from: number } & WatchSpan)
  | ({ readonly type: 'event'; readonly watch: string } & Change)
  | { readonly type: 'progress'; readonly watch: string; readonly revision: number }
  /** The stream broke, and continues from a revision. */
  | { readonly type: 'resumed'; readonly watch: string; readonly from: number }
  /** It learned that changes below this revision are gone. */
  | { readonly type: 'compacted'; readonly watch: string; readonly revision: number }
  /** It ended. `upTo` is set if it had time to receive everything up to that revision. */
  | { readonly type: 'closed'; readonly watch: string; readonly upTo?: number };

export interface WatchCheckOptions {
  /** `changed` reports every change, so that an event without one is false. */
  readonly allChangesKnown?: boolean;
  /** The number of changes and deliveries to remember. More are a mistake of the test. */
  readonly eventsMax?: number;
}

interface Known extends Change {
  /** Reported by `changed`. */
  announced: boolean;
}

interface Watching extends WatchSpan {
  readonly name: string;
  readonly delivered: Map<string, Change>;
  /** The revisions of which it has received everything: both ends are included. The last part grows. */
  readonly covered: { readonly from: number; to: number }[];
  /** The lowest revision that may still come. */
  next: number;
  /** The highest compaction revision that it learned. */
  compacted: number;
}

const EVENTS_MAX = 2_000_000;

export class WatchCheck implements Check<WatchEvent> {
  readonly name = 'watch';
  readonly #options: WatchCheckOptions;
  readonly #known = new Map<string, Known>();
  /** By revision. */
  readonly #changes: Known[] = [];
  readonly #watches = new Map<string, Watching>();
  #compaction = 0;
  #remembered = 0;

  constructor(options: WatchCheckOptions = {}) {
    this.#options = options;
  }

  observe(event: WatchEvent): readonly Finding[] {
    switch (event.type) {
      case 'changed':
        return this.#learn(event, undefined);
      case 'compaction':
        this.#compaction = Math.max(this.#compaction, event.revision);
        return NOTHING;
      case 'opened':
        return this.#open(event);
      case 'event':
        return this.#deliver(this.#watch(event.watch), event);
      case 'progress':
        return this.#progress(this.#watch(event.watch), event.revision);
      case 'resumed':
        return this.#resume(this.#watch(event.watch), event.from);
      case 'compacted':
        return this.#tellCompacted(this.#watch(event.watch), event.revision);
      case 'closed':
        return event.upTo === undefined ? NOTHING : this.#cover(this.#watch(event.watch), event.upTo);
    }
  }

  finish(): readonly Finding[] {
    if (this.#options.allChangesKnown !== true) return NOTHING;
    const invented = this.#changes.find(({ announced }) => !announced);
    return invented === undefined
      ? NOTHING
      : [fault('true', `a watch told of ${text(invented)}, which never happened`)];
  }

  #open({ watch, from, start, end, noPut = false, noDelete = false }: Extract<WatchEvent, { type: 'opened' }>) {
    assert(!this.#watches.has(watch), `the watch ${watch} is opened once`);
    const covered = [{ from, to: from - 1 }];
    const delivered = new Map<string, Change>();
    this.#watches.set(watch, {
      name: watch,
      start,
      end,
      noPut,
      noDelete,
      delivered,
      covered,
      next: from,
      compacted: 0,
    });
    return NOTHING;
  }

  #deliver(watch: Watching, event: Change): readonly Finding[] {
    const { revision } = event;
    const id = idOf(event);
    const told = `watch ${watch.name} was told of ${text(event)}`;
    const found: Finding[] = [];
    if (!concerns(watch, event)) found.push(fault('true', `${told}, which it does not watch`));
    if (watch.delivered.has(id)) return [...found, fault('no repeats', `${told} twice`)];
    this.#remember();
    watch.delivered.set(id, pick(event));
    if (revision < watch.next) found.push(fault('order', `${told} when only ${watch.next} and above could come`));
    found.push(...this.#learn(event, watch));
    if (revision < watch.next) return found;
    watch.next = revision;
    return [...found, ...this.#cover(watch, revision - 1)];
  }

  #progress(watch: Watching, revision: number): readonly Finding[] {
    watch.next = Math.max(watch.next, revision + 1);
    return this.#cover(watch, revision);
  }

  /** W2, W3. */
  #resume(watch: Watching, from: number): readonly Finding[] {
    const due = watch.next;
    watch.next = from;
    if (from <= due) {
      // It has requested these again.
      for (const [id, { revision }] of watch.delivered) if (revision >= from) watch.delivered.delete(id);
      const current = last(watch);
      current.to = Math.min(current.to, from - 1);
      return NOTHING;
    }
    // Whether the watch received the whole revision is checked once the watch is past it.
    if (from === due + 1) return NOTHING;
    watch.covered.push({ from, to: from - 1 });
    if (from <= watch.compacted) return NOTHING;
    return [fault('complete', `watch ${watch.name} was resumed at ${from}, where ${due} was still to come`)];
  }

  /** W5. */
  #tellCompacted(watch: Watching, revision: number): readonly Finding[] {
    watch.compacted = Math.max(watch.compacted, revision);
    const told = `watch ${watch.name} was told that all below ${revision} is compacted`;
    if (revision <= watch.next) return [fault('compacted', `${told}, and needs only ${watch.next} and above`)];
    if (revision <= this.#compaction) return NOTHING;
    return [fault('compacted', `${told}, and compaction was asked for up to ${this.#compaction}`)];
  }

  /** W3: from now on everything up to `to` must have come. */
  #cover(watch: Watching, to: number): readonly Finding[] {
    const span = last(watch);
    if (to <= span.to) return NOTHING;
    const missing: Change[] = [];
    for (let i = this.#firstAbove(span.to); ; i++) {
      const change = this.#changes[i];
      if (change === undefined || change.revision > to) break;
      if (concerns(watch, change) && !watch.delivered.has(idOf(change))) missing.push(change);
    }
    span.to = to;
    const [first] = missing;
    if (first === undefined) return NOTHING;
    const more = missing.length > 1 ? ` and ${missing.length - 1} more` : '';
    return [fault('complete', `watch ${watch.name} is past ${to} and was not told of ${text(first)}${more}`)];
  }

  /**
   * A change becomes known. Watches that are past it must have received it, and all must have the same content (W4).
   */
  #learn(change: Change, by: Watching | undefined): readonly Finding[] {
    const known = this.#known.get(idOf(change));
    if (known !== undefined) {
      known.announced ||= by === undefined;
      if (alike(known, change)) return NOTHING;
      const who = by === undefined ? 'what happened' : `watch ${by.name}`;
      return [fault('true', `${who} is ${text(change)}, and was told as ${text(known)}`)];
    }
    this.#remember();
    const learnt: Known = { ...pick(change), announced: by === undefined };
    this.#known.set(idOf(change), learnt);
    this.#changes.splice(this.#firstAbove(change.revision), 0, learnt);
    for (const watch of this.#watches.values()) {
      const past = watch.covered.some(({ from, to }) => from <= change.revision && change.revision <= to);
      if (!past || !concerns(watch, change) || watch.delivered.has(idOf(change))) continue;
      return [fault('complete', `watch ${watch.name} is past ${last(watch).to} and was not told of ${text(change)}`)];
    }
    return NOTHING;
  }

  /** The index of the first change above a revision. */
  #firstAbove(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    if ((this.#changes[high - 1]?.revision ?? 0) <= revision) return high; // Almost always.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #watch(name: string): Watching {
    const watch = this.#watches.get(name);
    assert(watch !== undefined, `the watch ${name} was opened`);
    return watch;
  }

  #remember(): void {
    this.#remembered += 1;
    assert(
      this.#remembered <= (this.#options.eventsMax ?? EVENTS_MAX),
      'a run has as many events as can be remembered',
    );
  }
}

function concerns({ start, end, noPut, noDelete }: WatchSpan, { key, kind }: Change): boolean {
  if ((kind === 'put' && noPut === true) || (kind === 'delete' && noDelete === true)) return false;
  return end === undefined ? key === start : key >= start && (end === '' || key < end);
}

function last(watch: Watching): { readonly from: number; to: number } {
  const span = watch.covered.at(-1);
  assert(span !== undefined, 'a watch covers something from its beginning');
  return span;
}

function alike(a: Change, b: Change): boolean {
  return a.kind === b.kind && (a.value === undefined || b.value === undefined || a.value === b.value);
}

function pick({ revision, key, kind, value }: Change): Change {
  return value === undefined ? { revision, key, kind } : { revision, key, kind, value };
}

function idOf({ revision, key }: Change): string {
  return `${revision}/${key}`;
}

function text({ revision, key, kind, value }: Change): string {
  return `${kind} of ${JSON.stringify(key)}${value === undefined ? '' : ` = ${JSON.stringify(value)}`} at ${revision}`;
}

function fault(promise: 'order' | 'no repeats' | 'complete' | 'true' | 'compacted', detail: string): Finding {
  return violation(`watch: ${promise}`, detail);
}
