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

  /** @throws CommandError that lists the nodes there are; or that says what is ambiguous, as a name may be a number. */
  find(text: string): admin.Node {
    const byId = this.#nodes.find(({ id }) => String(id) === text);
    const named = this.#nodes.filter(({ name }) => name === text);
    // The machine of a node that was removed may have joined again under the same name.
    const byName = named.find(({ duty }) => duty !== 'removed') ?? named.at(-1);
    if (byId !== undefined && byName !== undefined && byId !== byName) {
      const message = `${text} is the id of ${byId.name} and the name of node ${byName.id}: say ${byId.name} or ${byName.id}`;
      throw new CommandError('failed', message);
    }
    const found = byId ?? byName;
    if (found !== undefined) return found;
    const known = this.#nodes.map(({ id, name }) => `${name} (${id})`).join(', ');
    throw new CommandError('failed', `there is no node ${text}; there are ${known}`);
  }

  /** 0: nobody. */
  nameOf(nodeId: number): string {
    return this.#names.get(nodeId) ?? (nodeId === 0 ? 'none' : `node ${nodeId}`);
  }
}
