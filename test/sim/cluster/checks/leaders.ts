/** Election safety: at most one leader in a term of a group (dissertation figure 3.2), the master group included. */
import type { Group } from '@remora/raft';
import { Violation } from '../../common/violation.ts';
import type { SimNode } from '../node.ts';

export class Leaders {
  /** By group and term. */
  readonly #known = new Map<string, number>();

  get elections(): number {
    return this.#known.size;
  }

  /** Looks at a node after something happened to it. */
  look(node: SimNode): void {
    const { roles } = node;
    if (roles === undefined) return;
    if (roles.master !== undefined) this.#see(node.id, roles.master.group);
    for (const { group } of roles.store?.replicas() ?? []) this.#see(node.id, group);
  }

  #see(nodeId: number, { groupId, role, term }: Group): void {
    if (role !== 'leader') return;
    const key = `${groupId}/${term}`;
    const known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, nodeId);
    else if (known !== nodeId) {
      throw new Violation('election safety', `nodes ${known} and ${nodeId} lead group ${groupId} in term ${term}`);
    }
  }
}
