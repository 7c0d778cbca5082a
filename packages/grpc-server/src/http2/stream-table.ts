import { STREAM_ID_MAX } from './protocol.ts';
import type { Stream } from './stream.ts';
import { StreamMap } from './stream-map.ts';

/**
 * What became of a stream that is not open: `idle` was never opened and may be; `skipped` was not, and may not be any
 * more; `reset` was reset by this side; `closed` ended in another way (RFC 9113 §5.1).
 */
export type ClosedState = 'idle' | 'skipped' | 'reset' | 'closed';

/** The streams of one connection, by their ids. */
export class StreamTable {
  readonly #open = new StreamMap();
  /** Ids of streams that this side has reset, the oldest first. */
  readonly #reset = new Set<number>();
  readonly #resetMax: number;
  /** The gap before the last id that left one. */
  #skippedFrom = 0;
  #skippedTo = 0;
  lastId = 0;

  constructor(resetMax: number) {
    this.#resetMax = resetMax;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id);
  }

  /** The streams that are open now. */
  all(): readonly Stream[] {
    return this.#open.values();
  }

  /** Gives up memory that an idle connection does not need. */
  shrink(): void {
    this.#open.shrink();
  }

  /** The client has used this id, and by that all below it (§5.1.1). */
  use(id: number): void {
    if (id > this.lastId + 2) {
      this.#skippedFrom = this.lastId;
      this.#skippedTo = id;
    }
    this.lastId = id;
  }

  add(stream: Stream): void {
    this.#open.add(stream);
  }

  delete(id: number): void {
    this.#open.delete(id);
  }

  noteReset(id: number): void {
    this.#reset.add(id);
    if (this.#reset.size <= this.#resetMax) return;
    for (const oldest of this.#reset) {
      this.#reset.delete(oldest);
      return;
    }
  }

  /** Of a stream that is not open. */
  stateOf(id: number): ClosedState {
    if (id > this.lastId || (id & 1) === 0 || id > STREAM_ID_MAX) return 'idle';
    if (this.#reset.has(id)) return 'reset';
    return id > this.#skippedFrom && id < this.#skippedTo ? 'skipped' : 'closed';
  }
}
