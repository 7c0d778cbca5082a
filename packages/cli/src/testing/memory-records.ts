import type { ClusterVersion } from '@remora/base';
import type { AuthImage } from '@remora/protocol';
import type { KnownNode } from '../node/cluster/known-nodes.ts';
import type { NodeAssignment, NodeRecords } from '../node/node-records.ts';

/** A node's records in memory. Each change is durable at once, because in production each is synced in place. */
export class MemoryRecords implements NodeRecords {
  #identity: NodeRecords['identity'];
  knownNodes: readonly KnownNode[] = [];
  knownAuth: AuthImage | undefined;
  clusterVersion: ClusterVersion | undefined;

  constructor(identity: NodeRecords['identity']) {
    this.#identity = identity;
  }

  get identity(): NodeRecords['identity'] {
    return this.#identity;
  }

  async assign(given: NodeAssignment): Promise<void> {
    this.#identity = { ...this.#identity, ...given };
  }

  rememberNodes(nodes: readonly KnownNode[]): void {
    this.knownNodes = nodes;
  }

  rememberAuth(image: AuthImage): void {
    this.knownAuth = image;
  }

  rememberVersion(version: ClusterVersion): void {
    this.clusterVersion = version;
  }

  async close(): Promise<void> {}
}
