import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { etcd3Scenarios } from './etcd3-scenarios.ts';
import { Cluster } from './harness.ts';

const prefixOf = (scenario: number): string => `s${String(scenario).padStart(2, '0')}/`;
/** Keys of each scenario are in three ranges: most have one letter behind their prefix. */
const BORDERS = etcd3Scenarios.flatMap((_, i) => ['', 'b', 'c'].map((letter) => prefixOf(i) + letter));

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start({ flags: { 'pre-split': BORDERS.join(',') } });
});
afterAll(() => cluster?.stop());

describe('the npm client etcd3 against a cluster of 40 ranges and more', () => {
  for (const [i, scenario] of etcd3Scenarios.entries()) {
    it.concurrent(`through node ${1 + (i % 3)}: ${scenario.name}`, () =>
      scenario.run([cluster.node(1 + (i % 3)).client], prefixOf(i)));
  }
});

it('compaction concerns all ranges, also those that have written nothing since', async () => {
  const client = new Etcd3({ hosts: [cluster.node(1).client] });
  try {
    const keys = [0, 1, 2].map((i) => `${prefixOf(i)}compacted`);
    const first = await Promise.all(keys.map((key) => client.put(key).value('old')));
    const revision = first.map(({ header }) => header.revision).sort()[0] ?? '0';
    const last = await client.put(keys[0] ?? '').value('new');
    await client.kv.compact({ revision: last.header.revision });
    for (const key of keys) {
      await expect(client.get(key).revision(revision).exec()).rejects.toThrow('required revision has been compacted');
    }
    const now = await Promise.all(keys.map((key) => client.get(key).revision(last.header.revision).string()));
    expect(now).toEqual(['new', 'old', 'old']);
    await expect(client.kv.compact({ revision: last.header.revision })).rejects.toThrow('has been compacted');
    const future = String(Number(last.header.revision) + 1_000_000);
    await expect(client.kv.compact({ revision: future })).rejects.toThrow('is a future revision');
  } finally {
    client.close();
  }
});

/** Every folder `sNN/` is in ranges of its own. */
describe('keys over HTTP in many ranges', () => {
  const NAMES = etcd3Scenarios.map((_, i) => `${prefixOf(i)}http/k`);
  const at = (path: string): string => `http://${cluster.node(2).http}/v1/${path}`;
  const get = async <Body>(path: string): Promise<Body> => (await (await fetch(at(path))).json()) as Body;
  const put = async (key: string, value: string): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'PUT', headers, body: JSON.stringify({ value }) };
    const answer = await fetch(at(`kv/${encodeURIComponent(key)}`), init);
    return ((await answer.json()) as { readonly modRevision: number }).modRevision;
  };
  interface Page {
    readonly revision: number;
    readonly next?: string;
    readonly kvs?: readonly { readonly key: string }[];
    readonly entries?: readonly { readonly kind: string; readonly name: string }[];
  }
  const pages = async (path: string, from = ''): Promise<Page[]> => {
    const all: Page[] = [];
    for (let after: string | undefined = from; after !== undefined; after = all.at(-1)?.next) {
      all.push(await get<Page>(after === '' ? path : `${path}&after=${after}`));
    }
    return all;
  };

  it('a tree and a search go through all of them, at one revision', async () => {
    for (const name of NAMES) await put(name, 'v');
    const begun = await get<Page>('kv-tree?prefix=s&limit=5');
    await put('s99/too late', 'v');
    const rest = await pages('kv-tree?prefix=s&limit=5', begun.next);
    const folders = [begun, ...rest].flatMap(({ entries = [] }) => entries).filter(({ kind }) => kind === 'folder');
    expect(folders.map(({ name }) => `s${name}`)).toEqual(etcd3Scenarios.map((_, i) => prefixOf(i)));
    expect(new Set([begun, ...rest].map(({ revision }) => revision)).size).toBe(1);
    const found = await pages('kv?contains=http/k&limit=7');
    expect(found.flatMap(({ kvs = [] }) => kvs).map(({ key }) => key)).toEqual(NAMES);
  });

  it('a stream of all of them resumes behind the last id, and a history ends where the key began', async () => {
    const key = NAMES.at(-1) ?? '';
    const since = await put(NAMES[0] ?? '', 'first');
    const second = await put(key, 'second');
    await fetch(at(`kv/${encodeURIComponent(key)}`), { method: 'DELETE' });
    const over = new AbortController();
    const { body } = await fetch(at(`kv-events?prefix=s&since=${since}`), { signal: over.signal });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('"type":"delete"')) text += (await reader?.read())?.value ?? '';
    over.abort();
    reader?.cancel().catch(() => {});
    expect(text).toContain(`id: ${second}\nevent: events`);
    expect(text).not.toContain(`id: ${since}\nevent: events`);
    const { versions } = await get<{ versions: { type: string }[] }>(`kv-history/${encodeURIComponent(key)}`);
    expect(versions.map(({ type }) => type)).toEqual(['delete', 'put', 'put']);
  });
});
