import type { ServiceError } from '@remora/base';
import type { WatchCreate } from '@remora/protocol';
import { keySpanWithin } from '../state/request-bounds.ts';
import type { WatchSink, WatchStream } from '../watch/watch-stream.ts';
import type { RangeReplica } from './range-replica.ts';

type Watched = Pick<WatchCreate, 'span'>;

/** The open streams of watches of one replica: who may begin one, and how all of them end. */
export class RangeWatches {
  readonly #replica: RangeReplica;
  readonly #streams = new Set<WatchStream>();

  constructor(replica: RangeReplica) {
    this.#replica = replica;
  }

  /** Why a watch cannot begin here; undefined when it can. */
  refusal({ epoch, span }: Pick<WatchCreate, 'epoch' | 'span'>): ServiceError | undefined {
    const { state, merges, leading } = this.#replica;
    const moved = this.#replica.isStale(epoch) || !keySpanWithin(state.bounds, span);
    if (moved || merges.refusal !== undefined) return this.#replica.staleEpoch();
    return leading ? undefined : this.#replica.notLeader();
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

  /** Tells every watch that it ends here, or those only that are `concerned`; the streams stay open. */
  endAll(error: ServiceError, concerned?: (watch: Watched) => boolean): void {
    for (const stream of this.#streams) stream.endAll(error, concerned);
  }

  /** The replica goes. */
  close(): void {
    for (const stream of this.#streams) stream.close();
  }
}
