import type { SeenRevision } from '../../calls.ts';

/** At least this many connections are remembered, and at most twice as many. */
const CONNECTIONS_MAX = 10_000;

/**
 * The newest revision that answers on each connection have carried.
 *
 * gRPC does not report the end of a connection. So a connection is forgotten when `CONNECTIONS_MAX` others have made a
 * call since its last one.
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
