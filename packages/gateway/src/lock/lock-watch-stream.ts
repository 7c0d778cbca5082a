import type { LockNews } from '@remora/lock';
import type { HeldBytes } from '@remora/protocol';
import * as pb from '@remora/protocol/remora';
import type { Backend, WatchControl } from '../backend.ts';
import type { CallerInfo, StreamHandler, StreamSink } from '../calls.ts';
import { LockEventBackpressure } from './lock-event-backpressure.ts';
import { toLockWatch } from './lock-requests.ts';
import { fromLockNews } from './lock-responses.ts';

/** `Lock.Watch`. */
export class LockWatchStream implements StreamHandler<pb.WatchRequest> {
  readonly #backend: Backend;
  readonly #principal: CallerInfo['principal'];
  readonly #sink: StreamSink<pb.WatchResponse>;
  readonly #events: LockEventBackpressure;
  #control: Omit<WatchControl, 'progress'> | undefined;
  /** The sizes of the messages that the client has not taken since it fell behind, the latest last. */
  #sizes: number[] = [];
  #backlogBytes = 0;

  constructor(backend: Backend, backlog: HeldBytes, sink: StreamSink<pb.WatchResponse>, { principal }: CallerInfo) {
    this.#backend = backend;
    this.#principal = principal;
    this.#sink = sink;
    const write = (one: LockNews): number => this.#write(fromLockNews(one));
    this.#events = new LockEventBackpressure(write, () => this.#control, backlog);
  }

  onRequest(request: pb.WatchRequest): boolean {
    this.#control ??= this.#backend.watchLocks(
      { ...toLockWatch(request), principal: this.#principal },
      (events) => this.#events.send(events),
      (error) => this.#sink.end(error),
    );
    return true;
  }

  #write(response: pb.WatchResponse): number {
    if (this.#sink.write(response)) return 0;
    const bytes = pb.WatchResponse.encode(response).finish().length;
    this.#sizes.push(bytes);
    this.#backlogBytes += bytes;
    const taken = this.#sizes.splice(0, Math.max(0, this.#sizes.length - this.#sink.unread()));
    for (const one of taken) this.#backlogBytes -= one;
    return this.#backlogBytes;
  }

  onDrain(): void {
    this.#sizes = [];
    this.#backlogBytes = 0;
    this.#events.onDrain();
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#control?.cancel();
    this.#events.close();
  }
}
