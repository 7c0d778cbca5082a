import type { admin } from '@remora/protocol/remora';
import { CommandError } from '../exit-codes.ts';

/** Finds nodes by what people call them: id or name. */
export class NodeNames {
  readonly #nodes: readonly admin.Node[];
  readonly #names: ReadonlyMap<number, string>;

  constructor(nodes: readonly admin.Node[]) {
    this.#nodes = nodes;
    this.#names = new Map(nodes.map(({ id, name }) => [id, name]));
  }

  /** @throws CommandError that lists the nodes there are. */
  find(text: string): admin.Node {
    const meant = this.#nodes.filter(({ id, name }) => name === text || String(id) === text);
    // The machine of a node that was removed may have joined again under the same name.
    const found = meant.find(({ duty }) => duty !== 'removed') ?? meant.at(-1);
    if (found !== undefined) return found;
    const known = this.#nodes.map(({ id, name }) => `${name} (${id})`).join(', ');
    throw new CommandError('failed', `there is no node ${text}; there are ${known}`);
  }

  /** 0: nobody. */
  nameOf(nodeId: number): string {
    return this.#names.get(nodeId) ?? (nodeId === 0 ? 'none' : `node ${nodeId}`);
  }
}
