/** Every page of the console, and the part of the cluster that the pages of one thing show. */

/** Names of things that exist. */
export interface Places {
  readonly session: string;
  readonly lock: string;
  readonly key: string;
  readonly range: number;
  readonly node: number;
}

interface ConsolePage {
  readonly name: string;
  /** Behind `/console/`. */
  address(places: Places): string;
}

export const PAGES: readonly ConsolePage[] = [
  { name: 'overview', address: () => '' },
  { name: 'locks', address: () => 'locks' },
  { name: 'lock', address: ({ lock }) => `locks?name=${encodeURIComponent(lock)}` },
  { name: 'sessions', address: () => 'sessions' },
  { name: 'session', address: ({ session }) => `sessions?session=${encodeURIComponent(session)}` },
  { name: 'keys', address: () => 'keys' },
  { name: 'key', address: ({ key }) => `keys?key=${encodeURIComponent(key)}` },
  { name: 'ranges', address: () => 'ranges' },
  { name: 'hottest', address: () => 'ranges?order=hot' },
  { name: 'range', address: ({ range }) => `ranges?range=${range}` },
  { name: 'heat', address: () => 'heat' },
  { name: 'nodes', address: () => 'nodes' },
  { name: 'node', address: ({ node }) => `nodes?node=${node}` },
  { name: 'scheduling', address: () => 'scheduling' },
  { name: 'settings', address: () => 'settings' },
  { name: 'users', address: () => 'users' },
  { name: 'audit', address: () => 'audit' },
];

/** Asks the cluster for one of each. */
export async function placesOf(base: string): Promise<Places> {
  const [{ sessions }, { locks }, { kvs }, { ranges }] = await Promise.all([
    ask<{ readonly sessions: readonly { readonly session: string }[] }>(`${base}/v1/sessions?limit=1`),
    ask<{ readonly locks: readonly { readonly name: string }[] }>(`${base}/v1/locks/default?limit=1`),
    ask<{ readonly kvs: readonly { readonly key: string }[] }>(`${base}/v1/kv?limit=1&values=false`),
    ask<{ readonly ranges: readonly { readonly id: number; readonly leaderNode: number }[] }>(
      `${base}/v1/cluster/ranges?limit=1`,
    ),
  ]);
  return {
    ...{ session: sessions[0]?.session ?? '', lock: locks[0]?.name ?? '', key: kvs[0]?.key ?? '' },
    ...{ range: ranges[0]?.id ?? 0, node: ranges[0]?.leaderNode ?? 0 },
  };
}

async function ask<Answer>(url: string): Promise<Answer> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Answer;
}
