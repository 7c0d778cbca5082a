/** Pages that found a cluster and change it: one shell for each group, in this order, on machines of its own. */
export const FOUNDING_GROUPS = [
  ['run-three-nodes', 'add-a-node', 'take-a-node-out'],
  ['run-three-nodes', 'change-addresses'],
  ['run-three-nodes', 'replace-a-node'],
  ['run-three-nodes', 'grow-to-five-nodes'],
].map((names) => names.map((name) => `docs/how-to/cluster/${name}.md`));

export const SECURE = 'docs/how-to/cluster/secure-a-cluster.md';

export const FOUNDING_PAGES = [...FOUNDING_GROUPS.flat(), SECURE];
