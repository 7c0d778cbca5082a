import { namedNode } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';

/** Finds nodes by id or name. */
export class NodeNames {
  readonly #nodes: readonly admin.Node[];
  readonly #names: ReadonlyMap<number, string>;

  constructor(nodes: readonly admin.Node[]) {
    this.#nodes = nodes;
    this.#names = new Map(nodes.map(({ id, name }) => [id, name]));
  }

  /**
   * @throws CommandError that lists the existing nodes; or that names the ambiguity, because a name may be a number.
   */
  find(text: string): admin.Node {
    const nodes = this.#nodes.map((node) => ({
      ...{ node, nodeId: node.id, name: node.name },
      removed: node.duty === 'removed',
    }));
    const found = namedNode(nodes, text);
    if ('problem' in found) throw new CommandError('failed', printableText(found.problem));
    return found.node.node;
  }

  /** 0: none. */
  nameOf(nodeId: number): string {
    return this.#names.get(nodeId) ?? (nodeId === 0 ? 'none' : `node ${nodeId}`);
  }
}
