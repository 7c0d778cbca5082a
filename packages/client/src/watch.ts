import type { Bytes, ServiceError } from '@remora/base';
import { type KvEvent, type PipeWatchMessage, type PipeWatchRequest, pipeWatch } from '@remora/protocol';
import { onAbort } from './abort.ts';
import { type KvPair, toPair } from './keys.ts';
import { Pushed } from './pushed.ts';
import type { Requester } from './requester.ts';
import { ResumedStream } from './resumed-stream.ts';

export interface WatchOptions {
  /** First revision to report; by default what happens from now on. */
  readonly startRevision?: number;
  readonly noPut?: boolean;
  readonly noDelete?: boolean;
  /** Deliver the pair before each change, where it is still known. */
  readonly prevKv?: boolean;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
}

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete, only its key and `modRevision` mean something. */
  readonly kv: KvPair;
  readonly prev: KvPair | undefined;
}

/** A consumer that is this far behind has its watch taken off the server, and resumed from history afterwards. */
const BUFFER_MAX = 10_000;

/**
 * One watch, as an async iterator.
 *
 * W1. Events come in order of revision, each once: after a break the watch resumes behind the last revision that is
 *     known to be complete.
 * W2. At most BUFFER_MAX events, and one message more, wait for the consumer.
 * W3. It ends by `close`, by its signal, or with an error that retrying cannot mend: COMPACTED when the revision to go
 *     on from is gone.
 */
export class KvWatch implements AsyncIterableIterator<WatchEvent> {
  readonly #events: Pushed<WatchEvent>;
  readonly #stream: ResumedStream<PipeWatchRequest, PipeWatchMessage>;
  readonly #forgetSignal: (() => void) | undefined;
  #nextRevision: number;

  constructor(requester: Requester, range: { readonly key: Bytes; readonly end?: Bytes }, options: WatchOptions) {
    const { startRevision = 0, noPut = false, noDelete = false, prevKv = false, signal } = options;
    this.#nextRevision = startRevision;
    this.#events = new Pushed(requester.ports.liveness, () => this.#stream.open());
    this.#stream = new ResumedStream(requester, pipeWatch, {
      request: () => ({ kind: 'create', ...range, startRevision: this.#nextRevision, noPut, noDelete, prevKv }),
      onMessage: (message) => this.#onMessage(message),
      onEnd: (error) => this.#end(error),
    });
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.close());
    if (signal?.aborted) this.close();
    else this.#stream.open();
  }

  /** The revision from which the watch would resume now; 0 until the server has said where it began. */
  get nextRevision(): number {
    return this.#nextRevision;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<WatchEvent>> {
    return this.#events.next();
  }

  return(): Promise<IteratorResult<WatchEvent>> {
    this.#events.clear();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the watch; events that were received can still be read. */
  close(): void {
    this.#end(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #onMessage(message: PipeWatchMessage): void {
    if (message.kind === 'events') for (const event of message.events) this.#events.push(toWatchEvent(event));
    // W1. Where it began is complete before that, unless it was asked to begin earlier.
    if (message.kind === 'events' || this.#nextRevision === 0) this.#nextRevision = message.revision + 1;
    if (this.#events.size >= BUFFER_MAX) this.#stream.pause(); // W2
  }

  #end(error: ServiceError | undefined): void {
    this.#stream.close();
    this.#forgetSignal?.();
    this.#events.end(error);
  }
}

function toWatchEvent(event: KvEvent): WatchEvent {
  return { type: event.type, kv: toPair(event.kv), prev: event.prev === undefined ? undefined : toPair(event.prev) };
}
