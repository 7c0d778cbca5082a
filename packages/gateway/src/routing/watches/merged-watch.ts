import { type ServiceError, type Span, spanContains, type Timer } from '@remora/base';
import { type KvEvent, kvRoutingKey } from '@remora/protocol';
import type { WatchControl, WatchListener, WatchOptions } from '../../backend.ts';
import type { BackendInFlight } from '../calls/in-flight.ts';
import { keysSpan } from '../routes/request-keys.ts';
import type { Route } from '../routes/route-map.ts';
import { RoutedWatch, type RoutedWatchDeps } from './routed-watch.ts';

export interface MergedWatchDeps extends RoutedWatchDeps {
  readonly inFlight: BackendInFlight;
  /**
   * Finds a revision: what was acknowledged before the call is at or below it, and what is not there when it is told comes
   * above it. Gives what takes the question back.
   */
  readonly now: (span: Span, done: (revision: number) => void) => () => void;
}

/** Events that wait for slower ranges, in bytes; ranges that are further are paused above it. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;
/** While events wait for ranges that are silent, those are asked how far they are, so often at most. */
const URGE_MS = 20;
/** A question that is not answered is repeated at this interval: its range may have been unable to close anything. */
const ASK_AGAIN_MS = 1_000;
/** How far all ranges are is told unasked so often at most: a range says so to all watches of a gateway when one of them asks. */
const WORD_MS = 1_000;

interface Part {
  readonly span: Span;
  readonly watch: RoutedWatch;
  /** Nothing below is still to come from here. Above what the whole watch has delivered, it is held. */
  next: number;
  /** How far its range said that it is: below `next` while the watch is one of the future. */
  told: number;
  held: KvEvent[];
  heldBytes: number;
  created: boolean;
  /** Asked how far it is, and has not answered yet (MW7). */
  owes: boolean;
}

interface Place {
  readonly span: Span;
  readonly from: number;
}

/**
 * A watch as its client sees it, over as many ranges as its keys are in.
 *
 * MW1. Each range has a part of the watch, which gets the events of its keys in order. They are delivered, merged by
 *      revision, up to where no part has anything still to come: that is what "up to" means in every message. So all
 *      changes of one revision come together, whatever ranges they are in.
 * MW2. Keys that go to another range go with all that was received of them: the part that takes over begins behind it.
 *      Nothing is missed or repeated.
 * MW3. What is held is bounded: above `HELD_BYTES_MAX` the parts that hold anything are paused, until it is delivered.
 *      The slowest part holds nothing, so the watch goes on. A paused watch holds nothing at all: each part begins again behind
 *      what of it was delivered, though others are not as far, as its range may be compacted as far as it was told.
 * MW4. A watch from now on over several ranges begins behind one revision that was drawn for it, once all of them have closed
 *      that: who reads when the watch has begun, and does not see a change, is told of it. Nobody knows of that revision
 *      before: where it is compacted by then, the watch begins behind a later one.
 * MW5. With one part, it stands between the range and the client only to notice when they become more.
 * MW6. When all parts have said that they are further, and none brought an event, the client is told, as it would be by one
 *      range: where it goes on at another gateway may otherwise be compacted, though it has missed nothing.
 * MW7. A question how far the watch is is answered once, when every part has answered it. A part that begins again, or
 *      takes over keys of another, meanwhile is asked when it has begun. All parts were asked after the question came, so
 *      the lowest of their answers is at least every revision that was acknowledged before.
 * MW8. Nothing is delivered before the client was told that the watch is created, which needs all parts: one may be split,
 *      and begin again, while others have events. Clients of etcd drop what comes before.
 */
export class MergedWatch implements WatchControl {
  readonly #deps: MergedWatchDeps;
  readonly #options: WatchOptions;
  readonly #listener: WatchListener;
  readonly #span: Span;
  /** The first revision not yet delivered; 0: from now on, and not begun yet. */
  #next: number;
  /** The highest revision that was told. */
  #told = 0;
  #parts: readonly Part[] = [];
  #created = false;
  #createdRevision = 0;
  /** MW3. Where each part begins again, while it is paused. */
  #paused: readonly Place[] | undefined;
  #over = false;
  /** MW7. */
  #progressAsked = false;
  #askingAgain: Timer | undefined;
  #stopAsking: (() => void) | undefined;
  #urging: Timer | undefined;
  /** MW6. Running since the last word. */
  #silence: Timer | undefined;

  constructor(deps: MergedWatchDeps, options: WatchOptions, listener: WatchListener) {
    this.#deps = deps;
    this.#options = options;
    this.#listener = listener;
    this.#span = keysSpan(options);
    this.#next = options.startRevision;
  }

  start(): void {
    this.#deps.inFlight.watches++;
    this.#begin();
  }

  #begin(): void {
    const parts = this.#deps.routes.covering(this.#span) ?? [this.#span];
    if (parts.length > 1 && this.#next === 0) this.#beginNow();
    else this.#open(parts.map((span) => this.#newPart(span, this.#next)));
  }

  /** MW4. */
  #beginNow(): void {
    this.#stopAsking = this.#deps.now(this.#span, (revision) => {
      this.#stopAsking = undefined;
      if (this.#over) return;
      this.#next = revision + 1;
      this.#createdRevision = revision;
      this.#begin();
    });
  }

  /** `from`: 0 for a watch from now on, of keys that are in one range. */
  #newPart({ start, end }: Span, from: number): Part {
    const { noPut, noDelete, prevKv } = this.#options;
    const span = { start, end };
    const watch: RoutedWatch = new RoutedWatch(
      this.#deps,
      { span, noPut, noDelete, prevKv, startRevision: from },
      {
        onCreated: (revision) => this.#onCreated(part, revision),
        onEvents: (events, revision) => this.#onEvents(part, events, revision),
        onProgress: (revision) => this.#onProgress(part, revision),
        onApart: (routes) => this.#onApart(part, routes),
        onEnd: (error, compactRevision) => this.#end(error, compactRevision),
      },
    );
    const owes = this.#progressAsked;
    const part: Part = { span, watch, next: from, told: 0, held: [], heldBytes: 0, created: false, owes };
    return part;
  }

  #open(parts: readonly Part[]): void {
    this.#parts = parts;
    if (this.#progressAsked) this.#askAgainLater();
    for (const { watch } of parts) watch.start();
  }

  #onCreated(part: Part, revision: number): void {
    part.created = true;
    if (part.next === 0) part.next = part.watch.next;
    if (part.owes) part.watch.ask(); // MW7
    if (this.#options.startRevision > 0) this.#createdRevision = Math.max(this.#createdRevision, revision);
    if (this.#created || this.#parts.some(({ created }) => !created)) return;
    if (this.#next === 0) this.#next = part.next;
    this.#created = true;
    this.#listener.onCreated(this.#createdRevision || revision);
    // MW8. The client may have paused or ended the watch by now.
    if (!this.#over && this.#paused === undefined && this.#parts.some(({ held }) => held.length > 0)) this.#merge();
  }

  /** MW7. */
  #onProgress(part: Part, revision: number): void {
    part.owes = false;
    advance(part, revision);
    if (this.#parts.length > 1) this.#merge();
    // The client may have paused or ended the watch by now.
    if (this.#over || this.#paused !== undefined || this.#parts.some(({ owes }) => owes)) return;
    this.#progressAsked = false;
    this.#askingAgain?.cancel();
    this.#askingAgain = undefined;
    const reached = this.#reached(this.#upTo());
    this.#told = reached;
    this.#next = Math.max(this.#next, reached + 1);
    this.#listener.onProgress(reached);
  }

  #onEvents(part: Part, events: readonly KvEvent[], revision: number): void {
    advance(part, revision);
    if (this.#parts.length === 1) return this.#deliver(events, revision); // MW5
    for (const event of events) {
      part.held.push(event);
      part.heldBytes += bytesOf(event);
    }
    this.#merge();
  }

  /** MW1. */
  #merge(): void {
    if (!this.#created) return this.#fitParts(); // MW8
    const upTo = this.#upTo();
    const events = this.#parts.flatMap((part) => taken(part, upTo));
    events.sort((a, b) => a.kv.modRevision - b.kv.modRevision);
    if (events.length > 0) this.#deliver(events, upTo);
    else {
      this.#next = Math.max(this.#next, upTo + 1);
      this.#sayHowFar();
    }
    this.#fitParts();
  }

  /** Nothing up to there is still to come from any part. */
  #upTo(): number {
    return this.#parts.reduce((lowest, { next }) => Math.min(lowest, next - 1), Number.POSITIVE_INFINITY);
  }

  /** MW6. What waits, and an answer that is due (MW7), is told soon, and says it. */
  #sayHowFar(): void {
    if (this.#silence !== undefined || this.#progressAsked || this.#parts.some(({ held }) => held.length > 0)) return;
    const reached = this.#reached(this.#upTo());
    if (reached <= this.#told) return;
    // Before: the client may end the watch.
    this.#silence = this.#deps.clock.setTimer(WORD_MS, () => {
      this.#silence = undefined;
      this.#sayHowFar();
    });
    this.#deliver([], reached);
  }

  /** A watch of the future has nothing to come below its first revision, but that is not reached yet. */
  #reached(upTo: number): number {
    return Math.max(
      this.#told,
      this.#parts.reduce((lowest, { told }) => Math.min(lowest, told), upTo),
    );
  }

  #deliver(events: readonly KvEvent[], revision: number): void {
    this.#told = Math.max(this.#told, revision);
    this.#next = Math.max(this.#next, revision + 1);
    this.#listener.onEvents(events, revision);
  }

  /** MW3, and no part waits for one that merely has nothing to say. The client may have ended the watch by now. */
  #fitParts(): void {
    if (this.#over || this.#paused !== undefined) return;
    const heldBytes = this.#parts.reduce((sum, part) => sum + part.heldBytes, 0);
    for (const { watch, held } of this.#parts) {
      if (held.length === 0) watch.resume();
      else if (heldBytes > HELD_BYTES_MAX) watch.pause();
    }
    if (heldBytes > 0) this.#urge();
  }

  /** Asks those how far they are who are not as far as what waits. */
  #urge(): void {
    if (this.#urging !== undefined) return;
    const furthest = this.#parts.reduce((high, { held }) => Math.max(high, held.at(-1)?.kv.modRevision ?? 0), 0);
    for (const { watch, next } of this.#parts) if (next <= furthest) watch.urge();
    this.#urging = this.#deps.clock.setTimer(URGE_MS, () => {
      this.#urging = undefined;
      if (!this.#over && this.#paused === undefined && this.#parts.some(({ held }) => held.length > 0)) this.#urge();
    });
  }

  /** MW2. */
  #onApart(part: Part, routes: readonly Route[]): void {
    if (part.next === 0) {
      this.#parts = [];
      return this.#begin();
    }
    const [first, ...others] = routes.map((route) => this.#newPart(route, part.next));
    if (first === undefined) return;
    first.held = part.held;
    first.heldBytes = part.heldBytes;
    const instead = [first, ...others];
    this.#parts = this.#parts.flatMap((one) => (one === part ? instead : [one]));
    for (const { watch } of instead) watch.start();
  }

  #end(error: ServiceError, compactRevision: number): void {
    if (this.#over) return;
    if (error.code === 'COMPACTED' && this.#options.startRevision === 0 && !this.#created) {
      this.#takeBack();
      this.#next = 0;
      return this.#begin(); // MW4
    }
    this.cancel();
    this.#listener.onEnd(error, compactRevision);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#deps.inFlight.watches--;
    this.#takeBack();
  }

  #takeBack(): void {
    for (const { watch } of this.#parts) watch.cancel();
    this.#parts = [];
    this.#stopAsking?.();
    this.#stopAsking = undefined;
    this.#urging?.cancel();
    this.#urging = undefined;
    this.#silence?.cancel();
    this.#silence = undefined;
    this.#askingAgain?.cancel();
    this.#askingAgain = undefined;
  }

  /** MW7. Parts that cannot be asked now are asked when they have begun. */
  progress(): void {
    if (this.#over || this.#progressAsked) return;
    this.#progressAsked = true;
    for (const part of this.#parts) {
      part.owes = true;
      part.watch.ask();
    }
    this.#askAgainLater();
  }

  #askAgainLater(): void {
    this.#askingAgain ??= this.#deps.clock.setTimer(ASK_AGAIN_MS, () => {
      this.#askingAgain = undefined;
      for (const { owes, watch } of this.#parts) if (owes) watch.urge();
      this.#askAgainLater();
    });
  }

  pause(): void {
    // A watch from "now" that has not begun yet has no place to resume from: let it begin first.
    if (this.#over || this.#paused !== undefined || this.#next === 0) return;
    // What waits for keys that went to another part since is held where it was received (MW2).
    const held = this.#parts
      .flatMap((part) => part.held)
      .map(({ kv }) => ({ key: kvRoutingKey(kv.key), at: kv.modRevision }));
    this.#paused = this.#parts.map(({ span, next }) => ({
      span,
      from: held.reduce((from, { key, at }) => (spanContains(span, key) ? Math.min(from, at) : from), next),
    }));
    this.#takeBack();
  }

  resume(): void {
    const places = this.#paused;
    if (this.#over || places === undefined) return;
    this.#paused = undefined;
    this.#open(places.map(({ span, from }) => this.#newPart(span, from)));
  }
}

/** Nothing up to `revision` is still to come from there. */
function advance(part: Part, revision: number): void {
  part.next = Math.max(part.next, revision + 1);
  part.told = Math.max(part.told, revision);
}

/** The events that a part holds up to a revision: it holds them no more. They are in order. */
function taken(part: Part, upTo: number): readonly KvEvent[] {
  const { held } = part;
  const first = held[0];
  if (first === undefined || first.kv.modRevision > upTo) return [];
  const later = held.findIndex(({ kv }) => kv.modRevision > upTo);
  part.held = later < 0 ? [] : held.slice(later);
  part.heldBytes = part.held.reduce((sum, event) => sum + bytesOf(event), 0);
  return later < 0 ? held : held.slice(0, later);
}

/** About what an event takes in memory. */
function bytesOf({ kv, prev }: KvEvent): number {
  const own = kv.key.length + kv.value.length + 100;
  return prev === undefined ? own : own + prev.key.length + prev.value.length + 100;
}
