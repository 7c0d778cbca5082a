import type { ServiceError } from '@remora/base';
import type { Method, Query } from '@remora/protocol';
import { onAbort } from './abort.ts';
import { Pushed } from './pushed.ts';
import type { Requester } from './requester.ts';
import { ResumedStream } from './resumed-stream.ts';

/**
 * When a consumer is this many events behind, the stream is closed; it is opened again when the consumer has caught up.
 */
const BUFFER_MAX = 10_000;

/**
 * The events of a stream from a gateway, as an async iterator. The stream is opened again each time that it breaks.
 *
 * SB1. At most BUFFER_MAX events, and those of one further message, are queued for the consumer.
 * SB2. It ends by `close`, by its signal, with the client, or with an error that opening the stream again would not
 *      fix.
 */
export abstract class Subscription<Event, Request, Message> implements AsyncIterableIterator<Event> {
  readonly #events: Pushed<Event>;
  readonly #stream: ResumedStream<Request, Message>;
  #forgetSignal: (() => void) | undefined;

  constructor(requester: Requester, method: Method<Request, Message>) {
    this.#events = new Pushed(requester.ports.liveness, () => this.#stream.open());
    this.#stream = new ResumedStream(requester, method, {
      request: () => this.request(),
      onMessage: (message) => {
        for (const event of this.eventsOf(message)) this.#events.push(event);
        if (this.#events.size >= BUFFER_MAX) this.#stream.pause(); // SB1
      },
      probe: () => this.probe(),
      onEnd: (error) => this.#end(error),
    });
  }

  /** The request, each time that the stream is opened. */
  protected abstract request(): Request;

  /** The events of a message. */
  protected abstract eventsOf(message: Message): readonly Event[];

  /** A small query to a range that the events come from. */
  protected abstract probe(): Query;

  /** Call it once, when `request` can be called. */
  protected begin(signal: AbortSignal | undefined): void {
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.close());
    if (signal?.aborted) this.close();
    else this.#stream.open();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next event. */
  next(): Promise<IteratorResult<Event>> {
    return this.#events.next();
  }

  /** Ends it, and drops the events that were not read. */
  return(): Promise<IteratorResult<Event>> {
    this.#events.clear();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends it. Events that have arrived can still be read. */
  close(): void {
    this.#end(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Called when it ends, without an error when it was closed; may be called again. */
  protected over(_error: ServiceError | undefined): void {}

  #end(error: ServiceError | undefined): void {
    this.over(error);
    this.#stream.close();
    this.#forgetSignal?.();
    this.#events.end(error);
  }
}
