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
