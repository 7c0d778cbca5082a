import { type Bytes, compareBytes, type Engine, type Logger, ServiceError } from '@remora/base';
import { type KvEvent, staleEpoch, type WatchCreate, type WatchMessage } from '@remora/protocol';
import type { RangeState } from '../state/range-state.ts';
import { keySpanWithin } from '../state/request-bounds.ts';
import { bytesOf, EventRing, type RevisionEvents } from './event-ring.ts';
import { scanHistory } from './history-scan.ts';
import { covers, SpanIndex } from './span-index.ts';

/** Where a stream of watch messages goes; `send` is false when the other side is behind (stop until it drains). */
export interface WatchSink {
  send(message: WatchMessage): boolean;
}

interface Watcher {
  readonly create: WatchCreate;
  readonly key: Bytes;
  readonly end: Bytes | undefined;
  readonly stream: WatchStream;
  /** Everything below was sent. */
  next: number;
  /** Synced: gets events as they are applied. Otherwise a catch-up is under way, or waits for the stream to drain. */
  synced: boolean;
  running: boolean;
  gone: boolean;
  /** Found since the last flush. */
  pending: KvEvent[];
}

export interface WatchHubOptions {
  readonly ringBytesMax: number;
  readonly logger: Logger;
  /** The highest revision at or below which the range writes nothing any more. */
  readonly closed: () => number;
}

/** A message is closed at this many events or bytes; the events of one revision always share a message. */
const MESSAGE_EVENTS_MAX = 1_000;
const MESSAGE_BYTES_MAX = 1024 * 1024;
const WATCHES_PER_STREAM_MAX = 100_000;
/** History scans at a time; further watches wait for their turn. So many messages may follow on a stream that blocks. */
const SCANS_MAX = 4;

/**
 * The watches on one range.
 *
 * W1. A watch gets each event of its span once, in revision order, from its start on: `next` moves only with what
 *     was handed to its stream.
 * W2. Memory is bounded: a watch whose stream is behind falls out of sync and is caught up from the ring or from
 *     history when the stream drains; nothing is queued for it.
 * W3. A watch that is not synced is in its stream's `behind`, or a scan of history is under way or waits for it; a
 *     stream that drains takes those that are behind in turn, so none of them starves.
 */
export class WatchHub {
  readonly #engine: Engine;
  readonly #state: RangeState;
  readonly #logger: Logger;
  readonly #ringBytesMax: number;
  readonly #closed: () => number;
  #ring: EventRing;
  readonly #index = new SpanIndex<Watcher>();
  #touched: Watcher[] = [];
  #count = 0;
  #scans = 0;
  readonly #waitingForScan: Watcher[] = [];

  constructor(engine: Engine, state: RangeState, options: WatchHubOptions) {
    this.#closed = options.closed;
    this.#engine = engine;
    this.#state = state;
    this.#logger = options.logger;
    this.#ringBytesMax = options.ringBytesMax;
    this.#ring = this.#emptyRing();
  }

  #emptyRing(): EventRing {
    return new EventRing({ from: this.#state.revision + 1, bytesMax: this.#ringBytesMax });
  }

  /** The state was replaced by a snapshot: what the ring held may have gaps to what follows. */
  reset(): void {
    this.#ring = this.#emptyRing();
  }

  get size(): number {
    return this.#count;
  }

  openStream(sink: WatchSink): WatchStream {
    return new WatchStream(this, sink);
  }

  /** Called by apply for each command that changed plain keys. */
  publish(revision: number, events: readonly KvEvent[]): void {
    this.#ring.push(revision, events);
    if (this.#count === 0) return;
    for (const event of events) {
      this.#index.forEach(event.kv.key, (watcher) => this.#offer(watcher, revision, event));
    }
  }

  #offer(watcher: Watcher, revision: number, event: KvEvent): void {
    // A watch may begin at a revision that is still to come.
    if (!watcher.synced || revision < watcher.next || !wanted(watcher, event)) return;
    if (watcher.pending.length === 0) this.#touched.push(watcher);
    watcher.pending.push(event);
  }

  /** Sends what was published since the last call; called when an entry has been applied whole. */
  flush(): void {
    if (this.#touched.length === 0) return;
    const touched = this.#touched;
    this.#touched = [];
    for (const watcher of touched) {
      const events = watcher.pending;
      watcher.pending = [];
      if (watcher.gone || !watcher.synced) continue;
      if (watcher.stream.blocked) this.#fallBehind(watcher);
      else this.#send(watcher, events, this.#state.revision);
    }
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
    const watcher: Watcher = {
      create,
      key: start,
      end: single ? undefined : end,
      stream,
      next: create.startRevision > 0 ? create.startRevision : this.#state.revision + 1,
      synced: false,
      running: false,
      gone: false,
      pending: [],
    };
    stream.watchers.set(create.watchId, watcher);
    this.#count++;
    this.#index.add(watcher);
    stream.send({ kind: 'created', watchId: create.watchId, revision: this.#state.revision });
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
    this.#count--;
    watcher.stream.watchers.delete(watcher.create.watchId);
    watcher.stream.behind.delete(watcher);
    this.#index.remove(watcher);
  }

  /** It is caught up when its stream drains (W2). */
  #fallBehind(watcher: Watcher): void {
    watcher.synced = false;
    if (!watcher.gone) watcher.stream.behind.add(watcher);
  }

  /** Brings a watch up to date, then marks it synced; pauses when its stream is behind. */
  #catchUp(watcher: Watcher): void {
    if (watcher.running || watcher.gone || watcher.synced) return;
    if (watcher.stream.blocked) return this.#fallBehind(watcher);
    if (watcher.next >= this.#ring.from) return this.#fromRing(watcher);
    watcher.running = true;
    if (this.#scans >= SCANS_MAX) this.#waitingForScan.push(watcher);
    else this.#scan(watcher);
  }

  #scan(watcher: Watcher): void {
    this.#scans++;
    void this.#fromHistory(watcher)
      .catch((error: unknown) => {
        this.#logger.error({ error: String(error) }, 'a watch could not be caught up from history');
        this.#end(watcher, new ServiceError('INTERNAL', 'the history could not be read', { cause: error }), 0);
      })
      .then(() => {
        this.#scans--;
        watcher.running = false;
        this.#catchUp(watcher);
        this.#nextScan();
      });
  }

  #nextScan(): void {
    while (this.#scans < SCANS_MAX) {
      const watcher = this.#waitingForScan.shift();
      if (watcher === undefined) return;
      if (watcher.gone) continue;
      if (!watcher.stream.blocked) this.#scan(watcher);
      else {
        watcher.running = false;
        this.#fallBehind(watcher);
      }
    }
  }

  #fromRing(watcher: Watcher): void {
    if (!this.#sendGroups(watcher, this.#ring.since(watcher.next), this.#state.revision)) return;
    watcher.synced = !watcher.stream.blocked;
    if (!watcher.synced) this.#fallBehind(watcher);
  }

  async #fromHistory(watcher: Watcher): Promise<void> {
    if (watcher.next < this.#state.compactRevision) {
      this.#end(
        watcher,
        new ServiceError('COMPACTED', `revision ${watcher.next} is compacted`),
        this.#state.compactRevision,
      );
      return;
    }
    const range = watcher.end === undefined ? { key: watcher.key } : { key: watcher.key, end: watcher.end };
    const below = this.#state.revision + 1;
    const { groups, upTo } = await scanHistory(
      this.#engine,
      range,
      { from: watcher.next, below },
      watcher.create.prevKv,
    );
    if (!watcher.gone) this.#sendGroups(watcher, groups, upTo - 1);
  }

  /** Sends what is wanted of `groups`, after which nothing up to `revision` is missing; false when it had to stop. */
  #sendGroups(watcher: Watcher, groups: Iterable<RevisionEvents>, revision: number): boolean {
    let batch: KvEvent[] = [];
    let bytes = 0;
    for (const group of groups) {
      const events = group.events.filter((event) => matches(watcher, event));
      if (events.length === 0) continue;
      for (const event of events) batch.push(event);
      bytes += bytesOf(events);
      if (batch.length < MESSAGE_EVENTS_MAX && bytes < MESSAGE_BYTES_MAX) continue;
      this.#send(watcher, batch, group.revision);
      batch = [];
      bytes = 0;
      if (!watcher.stream.blocked) continue;
      this.#fallBehind(watcher);
      return false;
    }
    // With nothing to say the next event speaks for itself.
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
    watcher.stream.send({
      kind: 'ended',
      watchId: watcher.create.watchId,
      code: error.code,
      message: error.message,
      compactRevision,
    });
  }

  /** The stream has drained: what fell behind is caught up, in turn (W3). */
  resume(stream: WatchStream): void {
    for (const watcher of stream.behind) {
      if (stream.blocked) return;
      stream.behind.delete(watcher);
      this.#catchUp(watcher);
    }
  }

  /** Tells each synced watch of the stream how far it is; one that is not synced is told by its events. */
  progress(stream: WatchStream): void {
    for (const watcher of stream.watchers.values()) {
      if (stream.blocked) return;
      if (!watcher.synced || watcher.pending.length > 0) continue;
      this.#send(watcher, [], this.#closed());
    }
  }
}

/** The watches of one caller, which share its stream. */
export class WatchStream {
  readonly #hub: WatchHub;
  readonly #sink: WatchSink;
  readonly watchers = new Map<number, Watcher>();
  /** Not synced, and to be caught up when the stream drains; oldest first. */
  readonly behind = new Set<Watcher>();
  /** Asked for while the stream was blocked: each is answered at least once, so they wait too. */
  readonly #waiting = new Map<number, WatchCreate>();
  #blocked = false;
  #closed = false;

  constructor(hub: WatchHub, sink: WatchSink) {
    this.#hub = hub;
    this.#sink = sink;
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  send(message: WatchMessage): void {
    if (!this.#closed && !this.#sink.send(message)) this.#blocked = true;
  }

  create(create: WatchCreate): void {
    if (this.#closed) return;
    if (this.watchers.size + this.#waiting.size >= WATCHES_PER_STREAM_MAX) {
      const message = `a stream carries at most ${WATCHES_PER_STREAM_MAX} watches`;
      this.ended(create.watchId, new ServiceError('RESOURCE_EXHAUSTED', message));
    } else if (this.#blocked) this.#waiting.set(create.watchId, create);
    else this.#hub.add(this, create);
  }

  cancel(watchId: number): void {
    if (this.#waiting.delete(watchId)) return;
    const watcher = this.watchers.get(watchId);
    if (watcher !== undefined) this.#hub.remove(watcher);
  }

  progress(): void {
    this.#hub.progress(this);
  }

  drained(): void {
    this.#blocked = false;
    for (const [watchId, create] of this.#waiting) {
      if (this.blocked) return;
      this.#waiting.delete(watchId);
      this.#hub.add(this, create);
    }
    this.#hub.resume(this);
  }

  /** Ends watches with an error: all of them, as when leadership moves, or those that `which` picks. */
  endAll(error: ServiceError, which: (create: WatchCreate) => boolean = () => true): void {
    for (const watcher of [...this.watchers.values()]) {
      if (!which(watcher.create)) continue;
      this.#hub.remove(watcher);
      this.ended(watcher.create.watchId, error);
    }
    for (const [watchId, create] of this.#waiting) {
      if (which(create) && this.#waiting.delete(watchId)) this.ended(watchId, error);
    }
  }

  ended(watchId: number, error: ServiceError): void {
    this.send({ kind: 'ended', watchId, code: error.code, message: error.message, compactRevision: 0 });
  }

  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    for (const watcher of [...this.watchers.values()]) this.#hub.remove(watcher);
  }
}

function wanted(watcher: Watcher, event: KvEvent): boolean {
  return !(event.type === 'put' ? watcher.create.noPut : watcher.create.noDelete);
}

function matches(watcher: Watcher, event: KvEvent): boolean {
  return covers(watcher, event.kv.key) && wanted(watcher, event);
}

function withoutPrev(event: KvEvent): KvEvent {
  return event.prev === undefined ? event : { type: event.type, kv: event.kv };
}
