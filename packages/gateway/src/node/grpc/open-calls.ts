import type { ServiceError } from '@remora/base';

/**
 * The open calls of a server: a list that is linked through the calls.
 *
 * It is no `Set`, because the tables of a set that grows and shrinks thousands of times a second keep dead calls alive
 * until the next major garbage collection (grpc-server's stream-map.ts tells why).
 */
export class OpenCalls {
  first: OpenCall | undefined;
  size = 0;

  /** Ends all that are open now. */
  end(error: ServiceError): void {
    const calls: OpenCall[] = [];
    for (let call = this.first; call !== undefined; call = call.next) calls.push(call);
    for (const call of calls) {
      if (!call.isOpen) continue;
      call.onEnd(error);
      call.giveUp?.();
    }
  }
}

export class OpenCall {
  readonly #calls: OpenCalls;
  previous: OpenCall | undefined;
  next: OpenCall | undefined;
  isOpen = true;
  /** Answers with the error. */
  onEnd: (error: ServiceError) => void = () => {};
  /** Ends the work for the call. */
  giveUp: (() => void) | undefined;

  constructor(calls: OpenCalls) {
    this.#calls = calls;
    this.next = calls.first;
    if (calls.first !== undefined) calls.first.previous = this;
    calls.first = this;
    calls.size++;
  }

  /** Returns false if it was closed before. */
  close(): boolean {
    if (!this.isOpen) return false;
    this.isOpen = false;
    const { previous, next } = this;
    if (previous === undefined) this.#calls.first = next;
    else previous.next = next;
    if (next !== undefined) next.previous = previous;
    this.previous = undefined;
    this.next = undefined;
    this.#calls.size--;
    return true;
  }
}
