import { type Bytes, binaryString, compareBytes, type Engine, type Logger, ServiceError } from '@remora/base';
import type { KvEvent, WatchCreate, WatchMessage } from '@remora/protocol';
import type { RangeState } from '../state/range-state.ts';
import { EventRing, type RevisionEvents } from './event-ring.ts';
import { scanHistory } from './history-scan.ts';

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

const MESSAGE_EVENTS_MAX = 1_000;
const WATCHES_PER_STREAM_MAX = 100_000;

/**
 * The watches on one range.
 *
 * W1. A watch gets each event of its span once, in revision order, from its start on: `next` moves only with what
 *     was handed to its stream.
 * W2. Memory is bounded: a watch whose stream is behind falls out of sync and is caught up from the ring or from
 *     history when the stream drains; nothing is queued for it.
 */
export class WatchHub {
  readonly #engine: Engine;
  readonly #state: RangeState;
  readonly #logger: Logger;
  readonly #ringBytesMax: number;
  #ring: EventRing;
  readonly #byKey = new Map<string, Set<Watcher>>();
  readonly #ranges = new Set<Watcher>();
  #touched: Watcher[] = [];
  #count = 0;

  constructor(engine: Engine, state: RangeState, options: { readonly ringBytesMax: number; readonly logger: Logger }) {
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
      const exact = this.#byKey.size === 0 ? undefined : this.#byKey.get(binaryString(event.kv.key));
      if (exact !== undefined) for (const watcher of exact) this.#offer(watcher, event);
      for (const watcher of this.#ranges) if (inRange(watcher, event.kv.key)) this.#offer(watcher, event);
    }
  }

  #offer(watcher: Watcher, event: KvEvent): void {
    if (!watcher.synced || !wanted(watcher, event)) return;
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
      if (watcher.stream.blocked) watcher.synced = false;
      else this.#send(watcher, events, this.#state.revision);
    }
  }

  add(stream: WatchStream, create: WatchCreate): void {
    const { start, end } = create.span;
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
    this.#index(watcher);
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

  #index(watcher: Watcher): void {
    if (watcher.end !== undefined) {
      this.#ranges.add(watcher);
      return;
    }
    const name = binaryString(watcher.key);
    const set = this.#byKey.get(name);
    if (set === undefined) this.#byKey.set(name, new Set([watcher]));
    else set.add(watcher);
  }

  remove(watcher: Watcher): void {
    if (watcher.gone) return;
    watcher.gone = true;
    this.#count--;
    watcher.stream.watchers.delete(watcher.create.watchId);
    if (watcher.end !== undefined) {
      this.#ranges.delete(watcher);
      return;
    }
    const name = binaryString(watcher.key);
    const set = this.#byKey.get(name);
    set?.delete(watcher);
    if (set?.size === 0) this.#byKey.delete(name);
  }

  /** Brings a watch up to date, then marks it synced; pauses when its stream is behind. */
  #catchUp(watcher: Watcher): void {
    if (watcher.running || watcher.gone || watcher.synced) return;
    if (watcher.next >= this.#ring.from) {
      this.#fromRing(watcher);
      return;
    }
    watcher.running = true;
    this.#fromHistory(watcher).then(
      () => {
        watcher.running = false;
        if (!watcher.stream.blocked) this.#catchUp(watcher);
      },
      (error: unknown) => {
        watcher.running = false;
        this.#logger.error({ error: String(error) }, 'a watch could not be caught up from history');
        this.#end(watcher, new ServiceError('INTERNAL', 'the history could not be read', { cause: error }), 0);
      },
    );
  }

  #fromRing(watcher: Watcher): void {
    let batch: KvEvent[] = [];
    for (const group of this.#ring.since(watcher.next)) {
      for (const event of group.events) if (matches(watcher, event)) batch.push(event);
      if (batch.length < MESSAGE_EVENTS_MAX) continue;
      this.#send(watcher, batch, group.revision);
      batch = [];
      if (watcher.stream.blocked) return;
    }
    watcher.synced = true;
    // With nothing to say the next event speaks for itself; a watch from the past is told that it has arrived.
    if (batch.length > 0) this.#send(watcher, batch, this.#state.revision);
    else watcher.next = Math.max(watcher.next, this.#state.revision + 1);
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
    if (watcher.gone) return;
    // W1. A compaction that passed while scanning may have removed what was to be found.
    if (watcher.next < this.#state.compactRevision) return this.#fromHistory(watcher);
    this.#sendGroups(watcher, groups, upTo - 1);
  }

  #sendGroups(watcher: Watcher, groups: readonly RevisionEvents[], revision: number): void {
    let batch: KvEvent[] = [];
    for (const group of groups) {
      for (const event of group.events) if (wanted(watcher, event)) batch.push(event);
      if (batch.length < MESSAGE_EVENTS_MAX) continue;
      this.#send(watcher, batch, group.revision);
      batch = [];
      if (watcher.stream.blocked) return;
    }
    if (batch.length > 0) this.#send(watcher, batch, revision);
    else watcher.next = Math.max(watcher.next, revision + 1);
  }

  #send(watcher: Watcher, events: readonly KvEvent[], revision: number): void {
    const shown = watcher.create.prevKv ? events : events.map(withoutPrev);
    watcher.next = revision + 1;
    watcher.stream.send({ kind: 'events', watchId: watcher.create.watchId, revision, events: shown });
    if (watcher.stream.blocked) watcher.synced = false;
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

  /** The stream has drained: everything that fell behind is caught up. */
  resume(stream: WatchStream): void {
    for (const watcher of stream.watchers.values()) {
      if (stream.blocked) return;
      this.#catchUp(watcher);
    }
  }

  /** Tells each synced watch of the stream how far it is. */
  progress(stream: WatchStream): void {
    for (const watcher of stream.watchers.values()) {
      if (watcher.synced && !stream.blocked && watcher.pending.length === 0)
        this.#send(watcher, [], this.#state.revision);
    }
  }
}

/** The watches of one caller, which share its stream. */
export class WatchStream {
  readonly #hub: WatchHub;
  readonly #sink: WatchSink;
  readonly watchers = new Map<number, Watcher>();
  #blocked = false;

  constructor(hub: WatchHub, sink: WatchSink) {
    this.#hub = hub;
    this.#sink = sink;
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  send(message: WatchMessage): void {
    if (!this.#sink.send(message)) this.#blocked = true;
  }

  create(create: WatchCreate): void {
    if (this.watchers.size >= WATCHES_PER_STREAM_MAX) {
      const message = `a stream carries at most ${WATCHES_PER_STREAM_MAX} watches`;
      this.send({ kind: 'ended', watchId: create.watchId, code: 'RESOURCE_EXHAUSTED', message, compactRevision: 0 });
    } else this.#hub.add(this, create);
  }

  cancel(watchId: number): void {
    const watcher = this.watchers.get(watchId);
    if (watcher !== undefined) this.#hub.remove(watcher);
  }

  progress(): void {
    this.#hub.progress(this);
  }

  drained(): void {
    this.#blocked = false;
    this.#hub.resume(this);
  }

  /** Ends every watch with an error, as when leadership moves. */
  endAll(error: ServiceError): void {
    for (const watcher of [...this.watchers.values()]) {
      this.#hub.remove(watcher);
      this.send({
        kind: 'ended',
        watchId: watcher.create.watchId,
        code: error.code,
        message: error.message,
        compactRevision: 0,
      });
    }
  }

  close(): void {
    for (const watcher of [...this.watchers.values()]) this.#hub.remove(watcher);
  }
}

function inRange(watcher: Watcher, key: Bytes): boolean {
  if (watcher.end === undefined) return compareBytes(watcher.key, key) === 0;
  return compareBytes(watcher.key, key) <= 0 && (watcher.end.length === 0 || compareBytes(key, watcher.end) < 0);
}

function wanted(watcher: Watcher, event: KvEvent): boolean {
  return !(event.type === 'put' ? watcher.create.noPut : watcher.create.noDelete);
}

function matches(watcher: Watcher, event: KvEvent): boolean {
  return inRange(watcher, event.kv.key) && wanted(watcher, event);
}

function withoutPrev(event: KvEvent): KvEvent {
  return event.prev === undefined ? event : { type: event.type, kv: event.kv };
}
