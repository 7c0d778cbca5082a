import type { NodeProcess } from './node-process.ts';

/**
 * The number, from 1, of the node that leads the first range in the newest term. Undefined: no node reports that it
 * leads.
 */
export async function leaderOf(nodes: readonly NodeProcess[]): Promise<number | undefined> {
  const claims = await Promise.all(nodes.map((node, i) => claimOf(node, i + 1)));
  const newest = Math.max(...claims.map(({ term }) => term));
  return claims.find(({ leads, term }) => leads && term === newest)?.n;
}

async function claimOf(
  node: NodeProcess,
  n: number,
): Promise<{ readonly n: number; readonly leads: boolean; readonly term: number }> {
  const [leads, terms] = await Promise.all([node.metrics('remora_range_leader'), node.metrics('remora_range_term')]);
  return { n, leads: [...leads.values()].includes(1), term: Math.max(0, ...terms.values()) };
}
