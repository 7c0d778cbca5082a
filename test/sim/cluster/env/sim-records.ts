/** A machine's records about the node on it: durable at once, because in production each change is synced in place. */

import type { ClusterVersion } from '@remora/base';
import type { AuthImage } from '@remora/protocol';
import type { KnownNode } from '../../../../packages/cli/src/node/cluster/known-nodes.ts';
import type { NodeAssignment, NodeRecords } from '../../../../packages/cli/src/node/node-records.ts';

export class SimRecords implements NodeRecords {
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

  /** Whether the node would notice that this one has lost its disk. */
  knows(nodeId: number): boolean {
    return this.knownNodes.some((node) => node.nodeId === nodeId && !node.removed);
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
