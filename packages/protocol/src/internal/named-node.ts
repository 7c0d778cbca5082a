/** A node, as people know it. */
export interface NamedNode {
  readonly nodeId: number;
  readonly name: string;
  /** Its machine may have joined again since, under the same name. */
  readonly removed: boolean;
}

export type Named<Node> = { readonly node: Node } | { readonly problem: string };

/**
 * Returns the node with this id or name; among several with the name, the one that was not removed. Names may be
 * numbers: if a word is the id of one node and the name of another, it is reported as ambiguous, because the wrong node
 * could be removed permanently.
 */
export function namedNode<Node extends NamedNode>(nodes: readonly Node[], text: string): Named<Node> {
  const byId = nodes.find(({ nodeId }) => String(nodeId) === text);
  const named = nodes.filter(({ name }) => name === text);
  const byName = named.find(({ removed }) => !removed) ?? named.at(-1);
  if (byId !== undefined && byName !== undefined && byId !== byName) {
    const instead = `say ${byId.name} or ${byName.nodeId}`;
    return { problem: `${text} is the id of ${byId.name} and the name of node ${byName.nodeId}: ${instead}` };
  }
  const node = byId ?? byName;
  if (node !== undefined) return { node };
  const known = nodes.map(({ nodeId, name }) => `${name} (${nodeId})`).join(', ');
  return { problem: `there is no node ${text}; there are ${known}` };
}
