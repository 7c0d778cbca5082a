import type { Bytes, ServiceError, Timer } from '@remora/base';
import type { PipeWatchRequest, ReconnectingChannel } from '@remora/protocol';
import { type KvEvent, type PipeWatchMessage, pipeWatch, type StreamHandle } from '@remora/protocol';
import { onAbort } from './abort.ts';
import { type KvPair, toPair } from './keys.ts';
import type { Requester } from './requester.ts';

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
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

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
  readonly #requester: Requester;
  readonly #request: Extract<PipeWatchRequest, { kind: 'create' }>;
  readonly #forgetSignal: (() => void) | undefined;
  #nextRevision: number;
  #buffer: WatchEvent[] = [];
  #read = 0;
  readonly #waiting: ((result: IteratorResult<WatchEvent>) => void)[] = [];
  readonly #rejecting: ((error: ServiceError) => void)[] = [];
  #stream: StreamHandle<PipeWatchRequest> | undefined;
  #timer: Timer | undefined;
  #generation = 0;
  #failures = 0;
  #over = false;
  #error: ServiceError | undefined;

  constructor(requester: Requester, range: { readonly key: Bytes; readonly end?: Bytes }, options: WatchOptions) {
    this.#requester = requester;
    this.#nextRevision = options.startRevision ?? 0;
    this.#request = {
      kind: 'create',
      ...range,
      startRevision: 0,
      noPut: options.noPut ?? false,
      noDelete: options.noDelete ?? false,
      prevKv: options.prevKv ?? false,
    };
    const { signal } = options;
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.close());
    if (signal?.aborted) this.close();
    else this.#open();
  }

  /** The revision from which the watch would resume now; 0 until the server has said where it began. */
  get nextRevision(): number {
    return this.#nextRevision;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<WatchEvent>> {
    const event = this.#buffer[this.#read];
    if (event !== undefined) {
      this.#read++;
      if (this.#read === this.#buffer.length) this.#drained();
      return Promise.resolve({ done: false, value: event });
    }
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    const { liveness } = this.#requester.ports;
    liveness.hold();
    return new Promise((resolve, reject) => {
      this.#waiting.push((result) => {
        liveness.release();
        resolve(result);
      });
      this.#rejecting.push((error) => {
        liveness.release();
        reject(error);
      });
    });
  }

  return(): Promise<IteratorResult<WatchEvent>> {
    this.#buffer = [];
    this.#read = 0;
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

  #open(): void {
    if (this.#over) return;
    const generation = ++this.#generation;
    const { channel } = this.#requester.gateways;
    const current = (): boolean => generation === this.#generation && !this.#over;
    const stream = channel.openStream(
      pipeWatch,
      { ...this.#request, startRevision: this.#nextRevision },
      (message) => {
        if (current()) this.#onMessage(message);
      },
      (error) => {
        if (current()) this.#onEnd(channel, error);
      },
    );
    if (current()) this.#stream = stream;
    else stream.cancel();
  }

  #onMessage(message: PipeWatchMessage): void {
    this.#failures = 0;
    if (message.kind === 'events') for (const event of message.events) this.#deliver(toWatchEvent(event));
    // W1. Where it began is complete before that, unless it was asked to begin earlier.
    if (message.kind === 'events' || this.#nextRevision === 0) this.#nextRevision = message.revision + 1;
    if (this.#buffer.length - this.#read >= BUFFER_MAX) this.#pause();
  }

  #deliver(event: WatchEvent): void {
    const resolve = this.#waiting.shift();
    this.#rejecting.shift();
    if (resolve === undefined) this.#buffer.push(event);
    else resolve({ done: false, value: event });
  }

  /** W2. */
  #pause(): void {
    this.#generation++;
    this.#stream?.cancel();
    this.#stream = undefined;
  }

  #drained(): void {
    this.#buffer = [];
    this.#read = 0;
    if (!this.#over && this.#stream === undefined && this.#timer === undefined) this.#open();
  }

  #onEnd(channel: ReconnectingChannel, error: ServiceError | undefined): void {
    this.#stream = undefined;
    this.#generation++;
    this.#requester.gateways.failed(channel);
    const lasting = error !== undefined && error.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED';
    if (lasting || this.#requester.closed) return this.#end(this.#requester.closed ? undefined : error);
    const { clock, random } = this.#requester.ports;
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(this.#failures++, 6));
    this.#timer = clock.setTimer(ceilingMs / 2 + random.int(Math.ceil(ceilingMs / 2)), () => {
      this.#timer = undefined;
      this.#open();
    });
  }

  #end(error: ServiceError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#stream?.cancel();
    this.#timer?.cancel();
    this.#forgetSignal?.();
    const waiting = this.#waiting.splice(0);
    const rejecting = this.#rejecting.splice(0);
    if (error !== undefined && rejecting.length === 0) this.#error = error;
    for (const [i, resolve] of waiting.entries()) {
      if (i === 0 && error !== undefined) rejecting[0]?.(error);
      else resolve({ done: true, value: undefined });
    }
  }
}

function toWatchEvent(event: KvEvent): WatchEvent {
  return { type: event.type, kv: toPair(event.kv), prev: event.prev === undefined ? undefined : toPair(event.prev) };
}
