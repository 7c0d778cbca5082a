import { type Bytes, ServiceError } from '@remora/base';
import { currentRanges, type KvEvent, type WatchCreate, type WatchMessage } from '@remora/protocol';

/**
 * The outgoing side of a stream of watch messages. `send` returns false when the receiver is behind; the sender then
 * stops until the stream drains.
 */
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
  /** Everything below this revision was sent. */
  next: number;
  /**
   * A synced watch gets events as they are applied. For any other, a catch-up is in progress, or waits for the stream
   * to drain.
   */
  synced: boolean;
  running: boolean;
  gone: boolean;
  /** Events found since the last flush. */
  pending: KvEvent[];
}

const WATCHES_PER_STREAM_MAX = 100_000;

/** The watches of one caller, which share its stream. */
export class WatchStream {
  readonly #hub: StreamHub;
  readonly #sink: WatchSink;
  readonly watchers = new Map<number, Watcher>();
  /** Watches that are not synced and are caught up when the stream drains; oldest first. */
  readonly behind = new Set<Watcher>();
  /**
   * Watches that still have to receive their progress, with the last question and the revision that was closed for it
   * (W6 of the hub).
   */
  readonly asked = new Map<Watcher, { readonly question: number; readonly closed: number }>();
  /** Watches requested while the stream was blocked. Each needs at least one answer, so they wait too. */
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

  /** Whether the stream carries no watch and no watch waits for it. */
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

  /** `question`: 0 if the closed revision does not answer a question. */
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

  /** Ends watches with an error: all of them (for example, when leadership moves), or those that `which` picks. */
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

/**
 * The last message of a watch. If the watch has to go elsewhere, the message contains the new route, like the answer to
 * a refused request.
 */
export function watchEnded(watchId: number, error: ServiceError, compactRevision = 0): WatchMessage {
  const { code, message } = error;
  const ranges = currentRanges(error);
  return { kind: 'ended', watchId, code, message, compactRevision, ...(ranges.length > 0 && { ranges }) };
}
