import type { Clock } from '@remora/base';
import { type RpcDialer, rangeWatch, type StreamHandle, type WatchMessage, type WatchRequest } from '@remora/protocol';

/** A watch that is open on a stream: it takes the messages that carry its id. */
export interface StreamedWatch {
  message(message: WatchMessage): void;
  /** The stream has ended; no further message follows for this watch. */
  interrupted(): void;
}

interface NodeStream {
  readonly handle: StreamHandle<WatchRequest>;
  readonly watches: Map<number, StreamedWatch>;
  /** The number of the last question that was sent, or is sent at the end of this turn. */
  question: number;
  asking: boolean;
}

/** One stream per node, shared by all watches whose ranges that node leads. */
export class WatchStreams {
  readonly #dialer: RpcDialer;
  readonly #clock: Clock;
  readonly #byNode = new Map<number, NodeStream>();
  #lastId = 0;

  constructor(dialer: RpcDialer, clock: Clock) {
    this.#dialer = dialer;
    this.#clock = clock;
  }

  /** Returns an id that no other watch has, on any stream. */
  newId(): number {
    return ++this.#lastId;
  }

  open(node: number, request: Extract<WatchRequest, { kind: 'create' }>, watch: StreamedWatch): void {
    const existing = this.#byNode.get(node);
    if (existing !== undefined) {
      existing.watches.set(request.watchId, watch);
      existing.handle.send(request);
      return;
    }
    const watches = new Map([[request.watchId, watch]]);
    let ended = false;
    const handle = this.#dialer.channel(node).openStream(
      rangeWatch,
      request,
      (message) => deliver(watches, message),
      () => {
        ended = true;
        if (this.#byNode.get(node)?.watches === watches) this.#byNode.delete(node);
        const interrupted = [...watches.values()];
        watches.clear();
        for (const one of interrupted) one.interrupted();
      },
    );
    // A stream that could not be opened has ended by now.
    if (!ended) this.#byNode.set(node, { handle, watches, question: 0, asking: false });
  }

  cancel(node: number, watchId: number): void {
    const stream = this.#byNode.get(node);
    if (stream?.watches.delete(watchId)) stream.handle.send({ kind: 'cancel', watchId });
  }

  /**
   * Asks for the progress of all watches on the node, once per turn. Returns the number of the question; answers to it
   * and to later questions are answers to this call. Returns 0 if there is no stream: then nothing was asked.
   */
  progress(node: number): number {
    const stream = this.#byNode.get(node);
    if (stream === undefined) return 0;
    if (stream.asking) return stream.question;
    stream.asking = true;
    const question = ++stream.question;
    this.#clock.setImmediate(() => {
      stream.asking = false;
      if (this.#byNode.get(node) === stream) stream.handle.send({ kind: 'progress', question });
    });
    return question;
  }
}

function deliver(watches: Map<number, StreamedWatch>, message: WatchMessage): void {
  const watch = watches.get(message.watchId);
  if (message.kind === 'ended') watches.delete(message.watchId);
  watch?.message(message);
}
