import type { ServiceError } from '@remora/base';
import type { Method, Query } from '@remora/protocol';
import { onAbort } from './abort.ts';
import { Pushed } from './pushed.ts';
import type { Requester } from './requester.ts';
import { ResumedStream } from './resumed-stream.ts';

/** A consumer that is this far behind has its stream taken off the server, and opened again when it has caught up. */
const BUFFER_MAX = 10_000;

/**
 * What a stream from a gateway tells, as an async iterator; the stream is opened again each time that it breaks.
 *
 * SB1. At most BUFFER_MAX events, and those of one message more, wait for the consumer.
 * SB2. It ends by `close`, by its signal, with the client, or with an error that opening it again cannot mend.
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

  /** What to ask for, each time that the stream is opened. */
  protected abstract request(): Request;

  /** What of a message is told to the consumer. */
  protected abstract eventsOf(message: Message): readonly Event[];

  /** A small question to a range that it is about. */
  protected abstract probe(): Query;

  /** To be called once, when `request` can answer. */
  protected begin(signal: AbortSignal | undefined): void {
    if (signal !== undefined) this.#forgetSignal = onAbort(signal, () => this.close());
    if (signal?.aborted) this.close();
    else this.#stream.open();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Event>> {
    return this.#events.next();
  }

  return(): Promise<IteratorResult<Event>> {
    this.#events.clear();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends it; events that were received can still be read. */
  close(): void {
    this.#end(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** It has ended, without an error when it was closed; called again when that is asked for again. */
  protected over(_error: ServiceError | undefined): void {}

  #end(error: ServiceError | undefined): void {
    this.over(error);
    this.#stream.close();
    this.#forgetSignal?.();
    this.#events.end(error);
  }
}
