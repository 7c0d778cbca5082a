import type { ResponseHeader } from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { SeenRevision } from '../calls.ts';

/**
 * Makes response headers; the cluster's number is derived from its id once.
 *
 * A header's term is the highest that this gateway has seen in any answer, as etcd's clients expect one term that never
 * falls, and each range has its own. Every range has a term of at least 1, so that is the first.
 */
export class Headers {
  readonly #backend: Backend;
  #raftTerm = 1;
  #clusterId = '';
  #clusterNumber = 0n;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /**
   * The header of an answer without keys: its revision is at least the newest that the client has seen on its
   * connection.
   */
  latest(seen: SeenRevision, revision = 0, raftTerm = 0): ResponseHeader {
    seen.newest = Math.max(seen.newest, revision);
    return this.make(seen.newest, raftTerm);
  }

  make(revision: number, raftTerm: number): ResponseHeader {
    const { clusterId } = this.#backend.view();
    if (clusterId !== this.#clusterId) {
      this.#clusterId = clusterId;
      this.#clusterNumber = clusterNumber(clusterId);
    }
    if (raftTerm > this.#raftTerm) this.#raftTerm = raftTerm;
    return {
      clusterId: this.#clusterNumber,
      memberId: this.#backend.nodeId,
      revision,
      raftTerm: this.#raftTerm,
    };
  }
}

const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;

/** etcd's clients identify a cluster by 64 bits: FNV-1a of the id's text (Fowler, Noll & Vo). */
function clusterNumber(clusterId: string): bigint {
  let hash = FNV_OFFSET;
  for (const byte of Buffer.from(clusterId, 'utf8')) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * FNV_PRIME);
  return hash;
}
