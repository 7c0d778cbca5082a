/** What a machine's disk keeps about the node on it: durable at once, as in production each change is synced in place. */
import { ServiceError } from '@remora/base';
import type { KnownNode, NodeRecords } from '../../../../packages/cli/src/node/platform.ts';

export class SimRecords implements NodeRecords {
  #identity: NodeRecords['identity'];
  knownNodes: readonly KnownNode[] = [];
  readonly #peers = new Map<number, string>();

  constructor(identity: NodeRecords['identity']) {
    this.#identity = identity;
  }

  get identity(): NodeRecords['identity'] {
    return this.#identity;
  }

  async assign(given: { readonly clusterId: string; readonly nodeId: number }): Promise<void> {
    this.#identity = { ...this.#identity, ...given };
  }

  /** Whether the node would notice that this one has lost its disk. */
  knows(nodeId: number): boolean {
    return this.#peers.has(nodeId);
  }

  checkPeer({ nodeId, incarnation }: { readonly nodeId: number; readonly incarnation: string }) {
    const known = this.#peers.get(nodeId);
    if (known === undefined) this.#peers.set(nodeId, incarnation);
    if (known === undefined || known === incarnation) return undefined;
    return new ServiceError('NODE_CONFLICT', `node ${nodeId} came back without its data`);
  }

  async rememberNodes(nodes: readonly KnownNode[]): Promise<void> {
    this.knownNodes = nodes;
  }

  async close(): Promise<void> {}
}
