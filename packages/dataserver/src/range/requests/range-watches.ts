import { LazySet, type ServiceError, spanCovers } from '@remora/base';
import type { Epoch, LockWatchRequest, WatchCreate } from '@remora/protocol';
import type { LockListeners } from '../../lock-watch/lock-listeners.ts';
import type { RangeBounds } from '../../state/bounds.ts';
import { keySpanWithin } from '../../state/request-bounds.ts';
import type { WatchHub } from '../../watch/watch-hub.ts';
import type { WatchSink, WatchStream } from '../../watch/watch-stream.ts';
import type { ReplicaContext } from '../replica-context.ts';

/** The open streams of watches of one replica, on keys and on locks: decides which may begin, and ends them. */
export class RangeWatches {
  readonly #context: ReplicaContext;
  readonly #hub: WatchHub;
  readonly #lockListeners: LockListeners;
  readonly #streams = new LazySet<WatchStream>();

  constructor(
    context: ReplicaContext,
    { hub, lockListeners }: { readonly hub: WatchHub; readonly lockListeners: LockListeners },
  ) {
    this.#context = context;
    this.#hub = hub;
    this.#lockListeners = lockListeners;
  }

  /** Why a watch cannot begin here; undefined if it can. */
  refusal({ epoch, span }: Pick<WatchCreate, 'epoch' | 'span'>): ServiceError | undefined {
    return this.#refusal(epoch, keySpanWithin(this.#context.state.bounds, span));
  }

  /** The same for listeners to locks, by routing keys. */
  lockRefusal({ epoch, span }: Pick<LockWatchRequest, 'epoch' | 'span'>): ServiceError | undefined {
    return this.#refusal(epoch, spanCovers(this.#context.state.bounds.routed, span));
  }

  #refusal(epoch: Epoch, isWithin: boolean): ServiceError | undefined {
    const { sealed, leading } = this.#context;
    if (this.#context.isStale(epoch) || !isWithin) return this.#context.staleEpoch();
    return sealed ?? (leading ? undefined : this.#context.notLeader());
  }

  openStream(sink: WatchSink): WatchStream {
    const stream = this.#hub.openStream(sink);
    this.#streams.add(stream);
    return stream;
  }

  closeStream(stream: WatchStream): void {
    stream.close();
    this.#streams.delete(stream);
  }

  /** Ends every watch here with an error; the streams stay open. */
  endAll(error: ServiceError): void {
    for (const stream of this.#streams) stream.endAll(error);
    this.#lockListeners.endAll(error);
  }

  /** Ends the watches that are not completely within the bounds. */
  endOutside(bounds: RangeBounds, error: ServiceError): void {
    for (const stream of this.#streams) stream.endAll(error, ({ span }) => !keySpanWithin(bounds, span));
    this.#lockListeners.endAll(error, (span) => !spanCovers(bounds.routed, span));
  }

  /** The replica is closing. */
  close(): void {
    for (const stream of this.#streams) stream.close();
    this.#lockListeners.endAll(this.#context.notLeader());
  }
}
