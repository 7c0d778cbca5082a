import { ServiceError } from '@remora/base';
import type { EventSource, EventStream } from '../api-types.ts';
import type { LiveTopic } from '../json/history.ts';
import { errorAnswer } from '../statuses.ts';

export interface LiveEvent {
  readonly event: LiveTopic | 'problem';
  readonly data: object;
}

/** Where the events of a topic come from. */
export interface LiveFeed {
  readonly topic: LiveTopic;
  subscribe(stream: LiveStream): void;
  unsubscribe(stream: LiveStream): void;
  /** The whole state, or why there is none; undefined: it is not known yet. */
  readonly current: LiveEvent | undefined;
}

export interface LiveStreamDeps {
  readonly feeds: readonly LiveFeed[];
  /** Throws if the caller may not look any more. */
  readonly check: () => void;
}

type Sink = Parameters<EventStream>[0];

/**
 * One client of live data.
 *
 * LS1. While the client is behind, nothing is written: what happens meanwhile is summed up in the names of the topics.
 *      When it has caught up, it gets their whole states. So the output that waits for a client is bounded by one state
 *      of each topic.
 * LS2. Before each event, the caller's permission is decided again: a user who loses the role root, or whose token has
 *      expired, gets an error, and the stream ends.
 */
export class LiveStream {
  readonly #deps: LiveStreamDeps;
  readonly #sink: Sink;
  #isBehind = false;
  #isOver = false;
  /** Topics of which events were left out. */
  readonly #late = new Set<LiveFeed>();

  constructor(deps: LiveStreamDeps, sink: Sink) {
    this.#deps = deps;
    this.#sink = sink;
  }

  /** Begins to listen; the functions are called by the transport. */
  begin(): EventSource {
    for (const feed of this.#deps.feeds) feed.subscribe(this);
    return { onDrain: () => this.#caughtUp(), onClose: () => this.#close() };
  }

  tell(feed: LiveFeed, { event, data }: LiveEvent): void {
    if (this.#isOver || !this.#isAllowed()) return;
    if (this.#isBehind)
      this.#late.add(feed); // LS1
    else this.#isBehind = this.#sink.write(event, data) > 0;
  }

  #caughtUp(): void {
    this.#isBehind = false;
    for (const feed of this.#late) {
      if (this.#isBehind) return;
      this.#late.delete(feed);
      const { current } = feed;
      if (current !== undefined) this.tell(feed, current);
    }
  }

  /** LS2. */
  #isAllowed(): boolean {
    try {
      this.#deps.check();
      return true;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#close();
      this.#sink.end('error', errorAnswer(error).body);
      return false;
    }
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const feed of this.#deps.feeds) feed.unsubscribe(this);
  }
}
