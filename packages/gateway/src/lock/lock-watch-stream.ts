import type { LockNews } from '@remora/lock';
import type { HeldBytes } from '@remora/protocol';
import * as pb from '@remora/protocol/remora';
import type { Backend, WatchControl } from '../backend.ts';
import type { StreamHandler, StreamSink } from '../calls.ts';
import { LockEventBackpressure } from './lock-event-backpressure.ts';
import { toLockWatch } from './lock-requests.ts';
import { fromNews } from './lock-responses.ts';

/** `Lock.Watch`. */
export class LockWatchStream implements StreamHandler<pb.WatchRequest> {
  readonly #backend: Backend;
  readonly #sink: StreamSink<pb.WatchResponse>;
  readonly #news: LockEventBackpressure;
  #control: Omit<WatchControl, 'progress'> | undefined;
  /** Of the last messages, as many as are unread; of those before the client fell behind nothing is known. */
  #unread: number[] = [];
  #unreadBytes = 0;

  constructor(backend: Backend, room: HeldBytes, sink: StreamSink<pb.WatchResponse>) {
    this.#backend = backend;
    this.#sink = sink;
    const write = (one: LockNews): number => this.#write(fromNews(one));
    this.#news = new LockEventBackpressure(write, () => this.#control, room);
  }

  onRequest(request: pb.WatchRequest): boolean {
    this.#control ??= this.#backend.watchLocks(toLockWatch(request), (news) => this.#news.tell(news));
    return true;
  }

  #write(response: pb.WatchResponse): number {
    if (this.#sink.write(response)) return 0;
    const bytes = pb.WatchResponse.encode(response).finish().length;
    this.#unread.push(bytes);
    this.#unreadBytes += bytes;
    const taken = this.#unread.splice(0, Math.max(0, this.#unread.length - this.#sink.unread()));
    for (const one of taken) this.#unreadBytes -= one;
    return this.#unreadBytes;
  }

  onDrain(): void {
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#news.onDrain();
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#control?.cancel();
    this.#news.close();
  }
}
