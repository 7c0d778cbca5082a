import { type Bytes, ServiceError } from '@remora/base';
import { currentRanges, type KvEvent, type WatchCreate, type WatchMessage } from '@remora/protocol';

/** Where a stream of watch messages goes; `send` is false when the other side is behind (stop until it drains). */
export interface WatchSink {
  send(message: WatchMessage): boolean;
}

/** The hub of a range (watch-hub.ts), as its streams use it. */
export interface StreamHub {
  add(stream: WatchStream, create: WatchCreate): void;
  remove(watcher: Watcher): void;
  progress(stream: WatchStream, question: number): void;
  resume(stream: WatchStream): void;
}

/** A watch, as the hub of its range keeps it. */
export interface Watcher {
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

const WATCHES_PER_STREAM_MAX = 100_000;

/** The watches of one caller, which share its stream. */
export class WatchStream {
  readonly #hub: StreamHub;
  readonly #sink: WatchSink;
  readonly watchers = new Map<number, Watcher>();
  /** Not synced, and to be caught up when the stream drains; oldest first. */
  readonly behind = new Set<Watcher>();
  /**
   * To be told how far they are, when they can be, with the last question and what was closed for it (W6 of the hub).
   */
  readonly asked = new Map<Watcher, { readonly question: number; readonly closed: number }>();
  /** Asked for while the stream was blocked: each is answered at least once, so they wait too. */
  readonly #waiting = new Map<number, WatchCreate>();
  #blocked = false;
  #closed = false;

  constructor(hub: StreamHub, sink: WatchSink) {
    this.#hub = hub;
    this.#sink = sink;
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  /** Whether it carries no watch, and none waits to be carried. */
  get empty(): boolean {
    return this.watchers.size + this.#waiting.size === 0;
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

  /** `question`: 0 when what the range has closed does not answer one. */
  progress(question: number): void {
    this.#hub.progress(this, question);
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
    this.send(watchEnded(watchId, error));
  }

  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    for (const watcher of [...this.watchers.values()]) this.#hub.remove(watcher);
  }
}

/** The last message of a watch. Who is sent elsewhere is told where, as with an answer that refuses a request. */
export function watchEnded(watchId: number, error: ServiceError, compactRevision = 0): WatchMessage {
  const { code, message } = error;
  const ranges = currentRanges(error);
  return { kind: 'ended', watchId, code, message, compactRevision, ...(ranges.length > 0 && { ranges }) };
}
