import type { LockNews } from '@remora/lock';
import type * as pb from '@remora/protocol/remora';
import type { Backend, WatchControl } from '../backend.ts';
import type { StreamHandler, StreamSink } from '../calls.ts';
import { toLockWatch } from './lock-requests.ts';
import { fromNews } from './lock-responses.ts';

/** `Lock.Watch`. While the client does not read, nothing is listened to: afterwards it begins anew. */
export class LockWatchStream implements StreamHandler<pb.WatchRequest> {
  readonly #backend: Backend;
  readonly #sink: StreamSink<pb.WatchResponse>;
  #control: Omit<WatchControl, 'progress'> | undefined;
  #blocked = false;

  constructor(backend: Backend, sink: StreamSink<pb.WatchResponse>) {
    this.#backend = backend;
    this.#sink = sink;
  }

  onRequest(request: pb.WatchRequest): boolean {
    this.#control ??= this.#backend.watchLocks(toLockWatch(request), (news) => this.#tell(news));
    return true;
  }

  #tell(news: readonly LockNews[]): void {
    for (const one of news) if (!this.#sink.write(fromNews(one))) this.#blocked = true;
    if (this.#blocked) this.#control?.pause();
  }

  onDrain(): void {
    this.#blocked = false;
    this.#control?.resume();
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#control?.cancel();
  }
}
