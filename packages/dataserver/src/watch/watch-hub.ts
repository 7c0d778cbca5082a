import { type Clock, compareBytes, type Engine, LazySet, type Logger, ServiceError } from '@remora/base';
import { type KvEvent, staleEpoch, type WatchCreate } from '@remora/protocol';
import { nextTurn } from '../engine/merge.ts';
import type { RangeState } from '../state/range-state.ts';
import { keySpanWithin } from '../state/request-bounds.ts';
import { EventRing, eventBytes, type RevisionEvents } from './event-ring.ts';
import { HeldEvents } from './held-events.ts';
import { type Piece, piecesOf } from './history-pieces.ts';
import { scanHistory } from './history-scan.ts';
import { ScanQueue } from './scan-queue.ts';
import { SpanIndex, spanTest } from './span-index.ts';
import { type StreamHub, type Watcher, type WatchSink, WatchStream, watchEnded } from './watch-stream.ts';

export interface WatchHubOptions {
  /** The current memory limit for recent events. */
  readonly ringBytesMax: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Events from history that are examined for watches in one turn of the loop (W8); TURN_EVENTS_MAX by default. */
  readonly turnEventsMax?: number | undefined;
  /** The closed revision: the range writes nothing more at or below it. */
  readonly closed: () => number;
  /** Prepared transactions commit at or above this revision; infinity if none is prepared. */
  readonly earliestCommit: () => number;
}

/** A message is closed at this many events or bytes; the events of one revision always share a message. */
const MESSAGE_EVENTS_MAX = 1_000;
const MESSAGE_BYTES_MAX = 1024 * 1024;
/** About a microsecond's work each. */
const TURN_EVENTS_MAX = 8_000;
/** In place of a question: the watch receives its progress, and that answers no question. */
const NO_QUESTION = 0;

/**
 * The watches on one range.
 *
 * W1. A watch gets each event of its span once, in revision order, from its start on: `next` moves only with what was
 *     handed to its stream.
 * W2. Memory is bounded. A watch whose stream is behind falls out of sync, and is caught up from the ring or from
 *     history when the stream drains; nothing is queued for it.
 * W3. A watch that is not synced is in its stream's `behind`, or a scan of history is in progress or waits for it. A
 *     stream that drains serves the watches that are behind in turn, so none of them starves.
 * W4. No event at or above the earliest revision at which a prepared transaction may commit is sent. Such events wait
 *     (`held`), up to the ring's limit in bytes. After a restart, or when there were more events than the limit, a
 *     watch may have received everything that can be sent while the ring begins later. That watch is `stalled`: it
 *     continues from history when there is more to send.
 * W5. At each compaction every synced watch receives its progress, so it can continue behind that revision at another
 *     leader. The same happens when its keys move to another range by a merge. The last progress that the watch
 *     received may be compacted by then, because its keys may not have changed for long.
 * W6. If a watch cannot receive its progress now, because it is not synced or its stream is behind, it is put into its
 *     stream's `asked`, and receives its progress as soon as possible: it may receive nothing else, and the caller
 *     waits. Events do not answer a question, because a watch that is being caught up has more of them to come. The
 *     answer names at least the revision that was closed for the question (`WatchSession` WS6). If a merge meanwhile
 *     brought keys with a lower closed revision, the watch receives that revision, which answers nothing, and the
 *     gateway asks again.
 * W7. A watch from now on begins behind the closed revision: some events at or below it may not have been sent yet to
 *     the watches that existed before.
 * W8. What a scan of history found is handed on in pieces of whole revisions. Other work runs after every
 *     TURN_EVENTS_MAX events. A watch is not synced meanwhile, so nothing else moves its `next` or sends it events; it
 *     may end, and its stream may be blocked, so both are examined before each piece.
 */
export class WatchHub implements StreamHub {
  readonly #engine: Engine;
  readonly #state: RangeState;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #turnEventsMax: number;
  readonly #ringBytesMax: () => number;
  readonly #closed: () => number;
  readonly #earliestCommit: () => number;
  #ring: EventRing;
  /** W4. */
  readonly #held = new HeldEvents();
  readonly #stalled = new LazySet<Watcher>();
  readonly #index = new SpanIndex<Watcher>();
  #touched: Watcher[] = [];
  readonly #watchers = new LazySet<Watcher>();
  readonly #scans = new ScanQueue<Watcher>((together) => this.#scan(together));
  /** The compaction at which the watches last received their progress (W5). */
  #toldAt: number;

  constructor(engine: Engine, state: RangeState, options: WatchHubOptions) {
    this.#closed = options.closed;
    this.#earliestCommit = options.earliestCommit;
    this.#engine = engine;
    this.#state = state;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#turnEventsMax = options.turnEventsMax ?? TURN_EVENTS_MAX;
    this.#ringBytesMax = options.ringBytesMax;
    this.#ring = this.#emptyRing();
    this.#toldAt = state.compactRevision;
  }

  #emptyRing(): EventRing {
    return new EventRing({ from: this.#state.revision + 1, bytesMax: this.#ringBytesMax });
  }

  /** Frees memory when the limit has fallen; called periodically. */
  trim(): void {
    this.#ring.trim();
  }

  /** A snapshot replaced the state: there may be gaps between the ring and what follows. */
  reset(): void {
    this.#dropRing();
  }

  /**
   * Watches that still wait for held events find them in history. They also find there what a prepared transaction
   * commits below the start of the new ring: a merge brings a revision that may be above that commit.
   */
  #dropRing(): void {
    const next = this.#upTo + 1;
    const complete = next > this.#state.revision;
    this.#held.takeBelow(Number.POSITIVE_INFINITY);
    this.#ring = this.#emptyRing();
    for (const watcher of this.#watchers) {
      if (!watcher.synced) continue;
      if (watcher.pending.length === 0) watcher.next = Math.max(watcher.next, next);
      watcher.synced = complete;
      this.#catchUp(watcher);
    }
  }

  /** The highest revision up to which everything was sent, or never had to be sent here (W4). */
  get #upTo(): number {
    return Math.min(this.#state.revision, this.#earliestCommit() - 1, this.#held.first - 1);
  }

  get size(): number {
    return this.#watchers.size;
  }

  openStream(sink: WatchSink): WatchStream {
    return new WatchStream(this, sink);
  }

  /** Called by apply for each command that changed plain keys. */
  publish(revision: number, events: readonly KvEvent[]): void {
    if (this.#held.size === 0 && revision < this.#earliestCommit()) return this.#tell(revision, events);
    this.#held.add(revision, events);
    if (this.#held.bytes > this.#ringBytesMax()) this.#dropRing();
  }

  #tell(revision: number, events: readonly KvEvent[]): void {
    if (revision < this.#ring.from) return; // The event is older than the ring: history has it (W4).
    this.#ring.push(revision, events);
    if (this.#watchers.size === 0) return;
    for (const event of events) {
      this.#index.forEach(event.kv.key, (watcher) => this.#offer(watcher, revision, event));
    }
  }

  #offer(watcher: Watcher, revision: number, event: KvEvent): void {
    // A watch may begin at a future revision.
    if (!watcher.synced || revision < watcher.next || !wanted(watcher, event)) return;
    if (watcher.pending.length === 0) this.#touched.push(watcher);
    watcher.pending.push(event);
  }

  /** Sends what was published since the last call; called when an entry has been applied whole. */
  flush(): void {
    if (this.#held.size > 0) {
      for (const { revision, events } of this.#held.takeBelow(this.#earliestCommit())) this.#tell(revision, events);
    }
    if (this.#stalled.size > 0) this.#resumeStalled();
    if (this.#touched.length > 0) this.#sendTouched();
    if (this.#toldAt < this.#state.compactRevision) this.#tellHowFar();
  }

  #sendTouched(): void {
    const touched = this.#touched;
    this.#touched = [];
    for (const watcher of touched) {
      const events = watcher.pending;
      watcher.pending = [];
      if (watcher.gone || !watcher.synced) continue;
      if (watcher.stream.blocked) this.#fallBehind(watcher);
      else {
        this.#send(watcher, events, this.#upTo);
        this.#answer(watcher);
      }
    }
  }

  /** W5. */
  #tellHowFar(): void {
    this.#toldAt = this.#state.compactRevision;
    for (const watcher of this.#watchers) {
      if (this.#canSay(watcher)) this.#send(watcher, [], this.#upTo);
      else this.#ask(watcher, NO_QUESTION); // W6
    }
  }

  /**
   * W5. Another range has the keys from now on. It writes them only above this revision, and may be compacted up to it.
   *     A synced watch continues there behind this revision.
   */
  leave(revision: number): void {
    const upTo = Math.max(this.#upTo, Math.min(revision, this.#earliestCommit() - 1, this.#held.first - 1));
    for (const watcher of this.#watchers) if (this.#canSay(watcher)) this.#send(watcher, [], upTo);
  }

  #resumeStalled(): void {
    const stalled = [...this.#stalled];
    this.#stalled.clear();
    for (const watcher of stalled) this.#catchUp(watcher);
  }

  add(stream: WatchStream, create: WatchCreate): void {
    const { start, end } = create.span;
    if (!keySpanWithin(this.#state.bounds, create.span)) {
      return stream.ended(create.watchId, staleEpoch([this.#state.descriptor]));
    }
    if (create.startRevision > 0 && create.startRevision < this.#state.compactRevision) {
      return this.#refuse(stream, create);
    }
    const single =
      end.length === start.length + 1 &&
      end[start.length] === 0 &&
      compareBytes(end.subarray(0, start.length), start) === 0;
    // W7.
    const now = create.startRevision > 0 ? this.#upTo : Math.max(this.#upTo, this.#closed());
    const watcher: Watcher = {
      create,
      key: start,
      end: single ? undefined : end,
      stream,
      next: create.startRevision > 0 ? create.startRevision : now + 1,
      synced: false,
      running: false,
      gone: false,
      pending: [],
    };
    stream.watchers.set(create.watchId, watcher);
    this.#watchers.add(watcher);
    this.#index.add(watcher);
    stream.send({ kind: 'created', watchId: create.watchId, revision: now });
    this.#catchUp(watcher);
  }

  #refuse(stream: WatchStream, create: WatchCreate): void {
    stream.send({
      kind: 'ended',
      watchId: create.watchId,
      code: 'COMPACTED',
      message: `revision ${create.startRevision} is compacted`,
      compactRevision: this.#state.compactRevision,
    });
  }

  remove(watcher: Watcher): void {
    if (watcher.gone) return;
    watcher.gone = true;
    this.#watchers.delete(watcher);
    this.#stalled.delete(watcher);
    watcher.stream.watchers.delete(watcher.create.watchId);
    watcher.stream.behind.delete(watcher);
    watcher.stream.asked.delete(watcher);
    this.#index.remove(watcher);
  }

  /** It is caught up when its stream drains (W2). */
  #fallBehind(watcher: Watcher): void {
    watcher.synced = false;
    if (!watcher.gone) watcher.stream.behind.add(watcher);
  }

  /** Brings a watch up to date, then marks it synced; pauses if its stream is behind. */
  #catchUp(watcher: Watcher): void {
    if (watcher.running || watcher.gone || watcher.synced) return;
    if (watcher.stream.blocked) return this.#fallBehind(watcher);
    if (watcher.next >= this.#ring.from) return this.#fromRing(watcher);
    if (watcher.next > this.#upTo) {
      this.#stalled.add(watcher);
      return;
    }
    watcher.running = true;
    this.#scans.add(watcher);
  }

  /** Watches that lost their stream's readiness while they waited fall behind again (W3). */
  async #scan(together: readonly Watcher[]): Promise<void> {
    const ready = together.filter(({ gone, stream }) => !gone && !stream.blocked);
    try {
      await this.#fromHistory(ready.filter((watcher) => !this.#endIfCompacted(watcher)));
    } catch (error) {
      this.#logger.error({ error: String(error) }, 'watches could not be caught up from history');
      const cause = new ServiceError('INTERNAL', 'the history could not be read', { cause: error });
      for (const watcher of ready) this.#end(watcher, cause, 0);
    }
    for (const watcher of together) {
      watcher.running = false;
      this.#catchUp(watcher);
    }
  }

  #endIfCompacted(watcher: Watcher): boolean {
    const { compactRevision } = this.#state;
    if (watcher.next >= compactRevision) return false;
    this.#end(watcher, new ServiceError('COMPACTED', `revision ${watcher.next} is compacted`), compactRevision);
    return true;
  }

  #fromRing(watcher: Watcher): void {
    if (!this.#sendGroups(watcher, this.#ring.since(watcher.next), this.#upTo)) return;
    watcher.synced = !watcher.stream.blocked;
    if (!watcher.synced) this.#fallBehind(watcher);
    else this.#answer(watcher);
  }

  /**
   * The watches are of one span. A stream that was blocked meanwhile receives the events of one of its watches
   * nevertheless, so that a watch moves on however often its stream is blocked (W3).
   */
  async #fromHistory(watchers: readonly Watcher[]): Promise<void> {
    const [first] = watchers;
    if (first === undefined) return;
    const { key, end } = first;
    const from = watchers.reduce((least, { next }) => Math.min(least, next), first.next);
    const { groups, upTo } = await scanHistory(
      { engine: this.#engine, clock: this.#clock },
      end === undefined ? { key } : { key, end },
      { from, below: this.#upTo + 1 },
      first.create.prevKv,
    );
    await this.#handOn(watchers, piecesOf(groups, { upTo: upTo - 1, eventsMax: this.#turnEventsMax }));
  }

  /** W8. */
  async #handOn(watchers: readonly Watcher[], pieces: readonly Piece[]): Promise<void> {
    const served = new Set<WatchStream>();
    let examined = 0;
    for (const watcher of watchers) {
      if (watcher.gone || (watcher.stream.blocked && served.has(watcher.stream))) continue;
      served.add(watcher.stream);
      for (const [at, { groups, count, upTo }] of pieces.entries()) {
        if (examined + count > this.#turnEventsMax && examined > 0) {
          await nextTurn(this.#clock);
          examined = 0;
        }
        examined += count;
        if (watcher.gone || (watcher.stream.blocked && at > 0)) break;
        if (!this.#sendGroups(watcher, groups, upTo)) break;
      }
    }
  }

  /**
   * Sends the wanted events of `groups`, after which nothing up to `revision` is missing; returns false if it had to
   * stop.
   */
  #sendGroups(watcher: Watcher, groups: Iterable<RevisionEvents>, revision: number): boolean {
    const covers = spanTest(watcher);
    let batch: KvEvent[] = [];
    let bytes = 0;
    for (const group of groups) {
      if (group.revision < watcher.next) continue;
      const before = batch.length;
      for (const event of group.events) {
        if (!covers(event.kv.key) || !wanted(watcher, event)) continue;
        batch.push(event);
        bytes += eventBytes(event);
      }
      if (batch.length === before) continue;
      if (batch.length < MESSAGE_EVENTS_MAX && bytes < MESSAGE_BYTES_MAX) continue;
      this.#send(watcher, batch, group.revision);
      batch = [];
      bytes = 0;
      if (!watcher.stream.blocked) continue;
      this.#fallBehind(watcher);
      return false;
    }
    // If there is nothing to send, the next event carries the revision.
    if (batch.length > 0) this.#send(watcher, batch, revision);
    else watcher.next = Math.max(watcher.next, revision + 1);
    return true;
  }

  #send(watcher: Watcher, events: readonly KvEvent[], revision: number): void {
    const shown = watcher.create.prevKv ? events : events.map(withoutPrev);
    watcher.next = Math.max(watcher.next, revision + 1);
    watcher.stream.send({ kind: 'events', watchId: watcher.create.watchId, revision, events: shown });
  }

  #end(watcher: Watcher, error: ServiceError, compactRevision: number): void {
    this.remove(watcher);
    watcher.stream.send(watchEnded(watcher.create.watchId, error, compactRevision));
  }

  /** The stream has drained: the watches that fell behind are caught up in turn (W3). */
  resume(stream: WatchStream): void {
    for (const watcher of stream.behind) {
      if (stream.blocked) return;
      stream.behind.delete(watcher);
      this.#catchUp(watcher);
    }
    for (const watcher of stream.asked.keys()) {
      if (stream.blocked) return;
      this.#answer(watcher);
    }
  }

  /** Sends each watch of the stream its progress as soon as possible (W6). */
  progress(stream: WatchStream, question: number): void {
    for (const watcher of stream.watchers.values()) {
      this.#ask(watcher, question);
      this.#answer(watcher);
    }
  }

  #ask(watcher: Watcher, question: number): void {
    const { asked } = watcher.stream;
    const before = asked.get(watcher);
    if (before === undefined || before.question < question) asked.set(watcher, { question, closed: this.#closed() });
  }

  /** W6. */
  #answer(watcher: Watcher): void {
    const { create, stream } = watcher;
    const asked = stream.asked.get(watcher);
    if (asked === undefined || !this.#canSay(watcher)) return;
    stream.asked.delete(watcher);
    const { question, closed } = asked;
    const revision = Math.min(this.#closed(), this.#held.first - 1);
    if (question === NO_QUESTION || revision < closed) return this.#send(watcher, [], revision);
    watcher.next = Math.max(watcher.next, revision + 1);
    stream.send({ kind: 'progress', watchId: create.watchId, revision, question });
  }

  /** A watch with unsent events cannot announce its progress before them. */
  #canSay({ synced, pending, stream }: Watcher): boolean {
    return synced && pending.length === 0 && !stream.blocked;
  }
}

function wanted(watcher: Watcher, event: KvEvent): boolean {
  return !(event.type === 'put' ? watcher.create.noPut : watcher.create.noDelete);
}

function withoutPrev(event: KvEvent): KvEvent {
  return event.prev === undefined ? event : { type: event.type, kv: event.kv };
}
