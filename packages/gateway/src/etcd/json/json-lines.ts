import { type ServiceError, toServiceError } from '@remora/base';
import type { StreamHandler, StreamSink } from '../../calls.ts';

interface LineInput {
  readonly requests: readonly unknown[];
  /** Whether the stream ends when all requests are answered. */
  readonly halfClose: boolean;
}

/**
 * Runs a stream of the API for a client that has sent all of its requests at once.
 *
 * JL1. Requests are given to the handler as fast as it takes them.
 * JL2. The handler is closed once, and nothing is written after the end.
 */
export class JsonLines {
  readonly #sink: StreamSink<unknown>;
  readonly #input: LineInput;
  readonly #open: (sink: StreamSink<unknown>, resume: () => void) => StreamHandler<unknown>;
  #handler: StreamHandler<unknown> | undefined;
  #next = 0;
  #over = false;

  constructor(
    sink: StreamSink<unknown>,
    open: (sink: StreamSink<unknown>, resume: () => void) => StreamHandler<unknown>,
    input: LineInput,
  ) {
    this.#sink = sink;
    this.#open = open;
    this.#input = input;
  }

  start(): void {
    const guarded: StreamSink<unknown> = {
      write: (message) => this.#over || this.#sink.write(message),
      unread: () => this.#sink.unread(),
      end: (error) => this.end(error),
    };
    try {
      this.#handler = this.#open(guarded, () => this.#feed());
    } catch (error) {
      return this.end(toServiceError(error));
    }
    if (this.#over) this.#handler.onClose();
    else this.#feed();
  }

  onDrain(): void {
    if (!this.#over) this.#handler?.onDrain();
  }

  onClose(): void {
    if (this.#over) return;
    this.#over = true;
    this.#handler?.onClose();
  }

  /** JL1. */
  #feed(): void {
    try {
      while (!this.#over && this.#next < this.#input.requests.length) {
        if (!this.#handler?.onRequest(this.#input.requests[this.#next++])) break;
      }
    } catch (error) {
      return this.end(toServiceError(error));
    }
    if (this.#over || this.#next < this.#input.requests.length) return;
    if (this.#next++ === this.#input.requests.length && this.#input.halfClose) this.#handler?.onHalfClose();
  }

  /** JL2. Ends the stream; with an error, if there is one. */
  end(error: ServiceError | undefined): void {
    if (this.#over) return;
    this.onClose();
    this.#sink.end(error);
  }
}
