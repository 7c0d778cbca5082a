import { type ServiceError, spanCovers } from '@remora/base';
import type { Epoch, LockWatchRequest, WatchCreate } from '@remora/protocol';
import type { RangeBounds } from '../../state/bounds.ts';
import { keySpanWithin } from '../../state/request-bounds.ts';
import type { WatchSink, WatchStream } from '../../watch/watch-stream.ts';
import type { RangeReplica } from '../range-replica.ts';

/** The open streams of watches of one replica, of keys and of locks: who may begin one, and how all of them end. */
export class RangeWatches {
  readonly #replica: RangeReplica;
  readonly #streams = new Set<WatchStream>();

  constructor(replica: RangeReplica) {
    this.#replica = replica;
  }

  /** Why a watch cannot begin here; undefined when it can. */
  refusal({ epoch, span }: Pick<WatchCreate, 'epoch' | 'span'>): ServiceError | undefined {
    return this.#refusal(epoch, keySpanWithin(this.#replica.state.bounds, span));
  }

  /** The same of those who listen to locks, by routing keys. */
  lockRefusal({ epoch, span }: Pick<LockWatchRequest, 'epoch' | 'span'>): ServiceError | undefined {
    return this.#refusal(epoch, spanCovers(this.#replica.state.bounds.routed, span));
  }

  #refusal(epoch: Epoch, isWithin: boolean): ServiceError | undefined {
    const { merges, leading } = this.#replica;
    if (this.#replica.isStale(epoch) || !isWithin) return this.#replica.staleEpoch();
    return merges.refusal ?? (leading ? undefined : this.#replica.notLeader());
  }

  openStream(sink: WatchSink): WatchStream {
    const stream = this.#replica.hub.openStream(sink);
    this.#streams.add(stream);
    return stream;
  }

  closeStream(stream: WatchStream): void {
    stream.close();
    this.#streams.delete(stream);
  }

  /** Tells every watch that it ends here; the streams stay open. */
  endAll(error: ServiceError): void {
    for (const stream of this.#streams) stream.endAll(error);
    this.#replica.lockListeners.endAll(error);
  }

  /** Ends the watches of what is not all within the bounds. */
  endOutside(bounds: RangeBounds, error: ServiceError): void {
    for (const stream of this.#streams) stream.endAll(error, ({ span }) => !keySpanWithin(bounds, span));
    this.#replica.lockListeners.endAll(error, (span) => !spanCovers(bounds.routed, span));
  }

  /** The replica goes. */
  close(): void {
    for (const stream of this.#streams) stream.close();
    this.#replica.lockListeners.endAll(this.#replica.notLeader());
  }
}
