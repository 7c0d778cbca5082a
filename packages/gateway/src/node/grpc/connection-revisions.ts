import type { SeenRevision } from '../../calls.ts';

/** As many connections as this are remembered for certain, and at most twice as many. */
const CONNECTIONS_MAX = 10_000;

/**
 * The newest revision that the answers on each connection have carried.
 *
 * gRPC does not say when a connection ends, so those that made no call for the longest time are forgotten: when
 * `CONNECTIONS_MAX` others have made one since.
 */
export class ConnectionRevisions {
  readonly #max: number;
  #recent = new Map<string, SeenRevision>();
  #earlier = new Map<string, SeenRevision>();

  constructor(max = CONNECTIONS_MAX) {
    this.#max = max;
  }

  /** `peer`: the client's address and port. */
  of(peer: string): SeenRevision {
    const known = this.#recent.get(peer);
    if (known !== undefined) return known;
    const seen = this.#earlier.get(peer) ?? { newest: 0 };
    if (this.#recent.size >= this.#max) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(peer, seen);
    return seen;
  }
}
