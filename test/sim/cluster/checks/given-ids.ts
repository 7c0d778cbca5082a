/**
 * Checks ids that the masters allocate: a node id belongs to one data directory permanently, and a replica id to one
 * place of one range (traps 10). Checked on every master, over all terms and restarts.
 */
import type { MasterImage } from '../../../../packages/master/src/metadata/master-state.ts';
import { Violation } from '../../common/violation.ts';

export class GivenIds {
  readonly #owners = new Map<string, string>();

  look({ nodes, ranges }: Pick<MasterImage, 'nodes' | 'ranges'>): void {
    for (const { nodeId, incarnation } of nodes) this.#owned(`node id ${nodeId}`, `"${incarnation}"`);
    for (const { rangeId, replicas } of ranges) {
      for (const { replicaId, nodeId } of replicas) {
        this.#owned(`replica id ${replicaId}`, `range ${rangeId} on node ${nodeId}`);
      }
    }
  }

  #owned(id: string, owner: string): void {
    const known = this.#owners.get(id);
    if (known === undefined) this.#owners.set(id, owner);
    else if (known !== owner) throw new Violation('ids are given once', `${id} was given to ${known} and to ${owner}`);
  }
}
