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
   * Finds a revision: every change acknowledged before the call is at or below it, and every change that is not there
   * when `done` is called gets a higher one. Returns a function that gives up.
   */
  readonly now: (span: Span, done: (revision: number) => void) => () => void;
}

/** Bytes of events that wait for slower ranges; above it, the watches of faster ranges are paused. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;
/** Least time between two questions to silent ranges how far they are, while events wait for them. */
const URGE_MS = 20;
/** Interval at which a question is repeated: the range may have been unable to close a revision. */
const ASK_AGAIN_MS = 1_000;
/**
 * Least time between two unasked `onEvents` without events: a range answers all watches of a gateway when one of them
 * asks.
 */
const PROGRESS_MS = 1_000;

interface Part {
  readonly span: Span;
  readonly watch: RoutedWatch;
  /** No later event of this part is below it. Events above what the whole watch has delivered are held. */
  next: number;
  /** The highest revision that its range has reported: below `next` while the start revision is in the future. */
  reported: number;
  held: KvEvent[];
  heldBytes: number;
  created: boolean;
  /** Whether it has a question without an answer (MW7). */
  owes: boolean;
}

interface Place {
  readonly span: Span;
  readonly from: number;
}

/**
 * A watch as its client sees it, over as many ranges as its keys are in.
 *
 * MW1. Each range has a part of the watch, which receives the events of its keys in order. The events of all parts are
 *      merged by revision, and delivered up to the revision below which no part has further events. So all changes of
 *      one revision are delivered together, in whichever ranges they are.
 * MW2. When keys move to another range, the new part starts behind the events that were received for them, and the held
 *      events stay. No event is missed or repeated.
 * MW3. The held events are bounded: above `HELD_BYTES_MAX`, parts that hold events are paused until these are
 *      delivered. The slowest part holds none, so the watch makes progress. A paused watch holds no events: each part
 *      starts again behind what it has delivered, although other parts are behind it, as its range may be compacted
 *      that far.
 * MW4. A watch from the next change on, over several ranges, starts behind one revision that was drawn for it, once all
 *      ranges have closed that revision: a client that reads after the watch has started, and does not see a change,
 *      gets its event. The client does not know that revision yet; if it is compacted by then, the watch starts behind
 *      a later one.
 * MW5. With one part, events are passed on as they come.
 * MW6. When all parts have reported progress without an event, the client receives the revision, as from a single
 *      range. Otherwise the revision from which it resumes at another gateway may be compacted, although it has missed
 *      nothing.
 * MW7. A question for the progress of the watch is answered once, when every part has answered it. A part that starts
 *      again, or takes over keys of another, is asked when it has started. All parts are asked after the question came,
 *      so the lowest of their answers is at least every revision that was acknowledged before.
 * MW8. Nothing is delivered before `onCreated`, which needs all parts: one may be split and start again while others
 *      have events. Clients of etcd drop events that come before.
 */
export class MergedWatch implements WatchControl {
  readonly #deps: MergedWatchDeps;
  readonly #options: WatchOptions;
  readonly #listener: WatchListener;
  readonly #span: Span;
  /** The first revision not yet delivered; 0: the watch is from the next change on, and has not started. */
  #next: number;
  /** The highest revision that the client has received. */
  #reported = 0;
  #parts: readonly Part[] = [];
  #created = false;
  #createdRevision = 0;
  /** MW3. Where each part starts again; undefined while the watch is not paused. */
  #paused: readonly Place[] | undefined;
  #over = false;
  /** MW7. */
  #progressAsked = false;
  #askingAgain: Timer | undefined;
  #stopAsking: (() => void) | undefined;
  #urging: Timer | undefined;
  /** MW6. Running since the client was last told. */
  #quietPeriod: Timer | undefined;

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

  /** `from`: 0 for a watch from the next change on, of keys that are in one range. */
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
    const part: Part = { span, watch, next: from, reported: 0, held: [], heldBytes: 0, created: false, owes };
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
    this.#reported = reached;
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
    if (!this.#created) return this.#pauseFullParts(); // MW8
    const upTo = this.#upTo();
    const events = this.#parts.flatMap((part) => takeUpTo(part, upTo));
    events.sort((a, b) => a.kv.modRevision - b.kv.modRevision);
    if (events.length > 0) this.#deliver(events, upTo);
    else {
      this.#next = Math.max(this.#next, upTo + 1);
      this.#reportProgress();
    }
    this.#pauseFullParts();
  }

  /** The revision up to which no part has further events. */
  #upTo(): number {
    return this.#parts.reduce((lowest, { next }) => Math.min(lowest, next - 1), Number.POSITIVE_INFINITY);
  }

  /** MW6. Not needed while events are held or an answer is due (MW7): these tell the revision soon. */
  #reportProgress(): void {
    if (this.#quietPeriod !== undefined || this.#progressAsked || this.#parts.some(({ held }) => held.length > 0))
      return;
    const reached = this.#reached(this.#upTo());
    if (reached <= this.#reported) return;
    // Before the call, in which the client may end the watch.
    this.#quietPeriod = this.#deps.clock.setTimer(PROGRESS_MS, () => {
      this.#quietPeriod = undefined;
      this.#reportProgress();
    });
    this.#deliver([], reached);
  }

  /** The revision that the ranges have reached: below `upTo` while the start revision is in the future. */
  #reached(upTo: number): number {
    return Math.max(
      this.#reported,
      this.#parts.reduce((lowest, { reported }) => Math.min(lowest, reported), upTo),
    );
  }

  #deliver(events: readonly KvEvent[], revision: number): void {
    this.#reported = Math.max(this.#reported, revision);
    this.#next = Math.max(this.#next, revision + 1);
    this.#listener.onEvents(events, revision);
  }

  /** MW3, and asks silent parts for which events wait. The client may have ended the watch by now. */
  #pauseFullParts(): void {
    if (this.#over || this.#paused !== undefined) return;
    const heldBytes = this.#parts.reduce((sum, part) => sum + part.heldBytes, 0);
    for (const { watch, held } of this.#parts) {
      if (held.length === 0) watch.resume();
      else if (heldBytes > HELD_BYTES_MAX) watch.pause();
    }
    if (heldBytes > 0) this.#urge();
  }

  /** Asks the parts that are behind the held events for their progress. */
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
      this.#cancelParts();
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
    this.#cancelParts();
  }

  #cancelParts(): void {
    for (const { watch } of this.#parts) watch.cancel();
    this.#parts = [];
    this.#stopAsking?.();
    this.#stopAsking = undefined;
    this.#urging?.cancel();
    this.#urging = undefined;
    this.#quietPeriod?.cancel();
    this.#quietPeriod = undefined;
    this.#askingAgain?.cancel();
    this.#askingAgain = undefined;
  }

  /** MW7. Parts that cannot be asked now are asked when they have started. */
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
    // A watch from the next change on has no revision to resume from before it has started.
    if (this.#over || this.#paused !== undefined || this.#next === 0) return;
    // Held events of keys that have moved to another part are in the part that received them (MW2).
    const held = this.#parts
      .flatMap((part) => part.held)
      .map(({ kv }) => ({ key: kvRoutingKey(kv.key), at: kv.modRevision }));
    this.#paused = this.#parts.map(({ span, next }) => ({
      span,
      from: held.reduce((from, { key, at }) => (spanContains(span, key) ? Math.min(from, at) : from), next),
    }));
    this.#cancelParts();
  }

  resume(): void {
    const places = this.#paused;
    if (this.#over || places === undefined) return;
    this.#paused = undefined;
    this.#open(places.map(({ span, from }) => this.#newPart(span, from)));
  }
}

/** A part has no further events up to `revision`. */
function advance(part: Part, revision: number): void {
  part.next = Math.max(part.next, revision + 1);
  part.reported = Math.max(part.reported, revision);
}

/** Removes the held events up to a revision from a part, and returns them in order. */
function takeUpTo(part: Part, upTo: number): readonly KvEvent[] {
  const { held } = part;
  const first = held[0];
  if (first === undefined || first.kv.modRevision > upTo) return [];
  const later = held.findIndex(({ kv }) => kv.modRevision > upTo);
  part.held = later < 0 ? [] : held.slice(later);
  part.heldBytes = part.held.reduce((sum, event) => sum + bytesOf(event), 0);
  return later < 0 ? held : held.slice(0, later);
}

/** Returns about how much memory an event takes. */
function bytesOf({ kv, prev }: KvEvent): number {
  const own = kv.key.length + kv.value.length + 100;
  return prev === undefined ? own : own + prev.key.length + prev.value.length + 100;
}
