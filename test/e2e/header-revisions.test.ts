/** The revision in the header of etcd's answers, over several ranges. */
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Cluster } from './harness.ts';

interface Answer {
  readonly header?: { readonly revision: string } | undefined;
}

let cluster: Cluster;
let clients: readonly Etcd3[];
beforeAll(async () => {
  cluster = await Cluster.start({ flags: { 'pre-split': 'm,t' } });
  clients = [1, 2, 3].map((n) => new Etcd3({ hosts: [cluster.node(n).client] }));
});
afterAll(async () => {
  for (const client of clients ?? []) client.close();
  await cluster?.stop();
});

function revisionOf({ header }: Answer): number {
  return Number(header?.revision ?? 0);
}

it('a read at the revision of an answer shows every write that was acknowledged before it, in any range', async () => {
  for (const [i, reader] of clients.entries()) {
    const writer = clients[(i + 1) % clients.length] ?? reader;
    await writer.put('aaa').value('a');
    for (let round = 0; round < 20; round++) {
      await writer.put('xxx').value(`old ${round}`);
      const { header } = await writer.put('xxx').value(`new ${round}`);
      const read = await reader.get('aaa').exec();
      expect(revisionOf(read)).toBeGreaterThanOrEqual(Number(header.revision));
      expect(await reader.get('xxx').revision(read.header.revision).string()).toBe(`new ${round}`);
    }
  }
});

it('the answers that one connection gets do not go back, whatever is asked, and are not before acknowledged writes', async () => {
  const [client, writer] = clients;
  if (client === undefined || writer === undefined) throw new Error('there are three clients');
  const bytes = (text: string): Buffer => Buffer.from(text);
  const { ID: lease } = await client.leaseClient.leaseGrant({ TTL: 60 });
  /** [request, whether it promises the newest revision] */
  const requests: readonly (readonly [string, boolean, () => Promise<Answer>])[] = [
    ['get', true, () => client.kv.range({ key: bytes('a') })],
    ['get of all', true, () => client.kv.range({ key: bytes('\0'), range_end: bytes('\0') })],
    ['serializable get', false, () => client.kv.range({ key: bytes('a'), serializable: true })],
    [
      'serializable get of all',
      false,
      () => client.kv.range({ key: bytes('\0'), range_end: bytes('\0'), serializable: true }),
    ],
    ['put', true, () => client.kv.put({ key: bytes('b'), value: bytes('1') })],
    ['delete of nothing', true, () => client.kv.deleteRange({ key: bytes('nothing') })],
    ['delete of nothing over ranges', true, () => client.kv.deleteRange({ key: bytes('l1'), range_end: bytes('m1') })],
    ['transaction that reads', true, () => client.kv.txn({ success: [{ request_range: { key: bytes('z') } }] })],
    ['lease grant', true, () => client.leaseClient.leaseGrant({ TTL: 60 })],
    ['lease time to live', true, () => client.leaseClient.leaseTimeToLive({ ID: lease, keys: true })],
    ['leases', true, () => client.leaseClient.leaseLeases()],
    ['status', false, () => client.maintenance.status()],
    ['member list', false, () => client.cluster.memberList({})],
  ];
  let seen = 0;
  for (let round = 0; round < 5; round++) {
    for (const [name, isCurrent, request] of requests) {
      const written = await writer.put(`x${round}`).value(name);
      const revision = revisionOf(await request());
      expect(revision, `${name} after ${seen}`).toBeGreaterThanOrEqual(seen);
      if (isCurrent) expect(revision, name).toBeGreaterThanOrEqual(revisionOf(written));
      seen = revision;
    }
  }
});

it('a serializable read is not before what a watch on its connection has shown', async () => {
  const [client, writer] = clients;
  if (client === undefined || writer === undefined) throw new Error('there are three clients');
  const watcher = await client.watch().key('z').create();
  try {
    for (let round = 0; round < 20; round++) {
      const shown = new Promise<void>((resolve) => watcher.once('put', () => resolve()));
      await client.kv.range({ key: Buffer.from('\0'), range_end: Buffer.from('\0'), serializable: true });
      const written = await writer.put('z').value(`${round}`);
      await shown;
      const read = await client.kv.range({ key: Buffer.from('\0'), range_end: Buffer.from('\0'), serializable: true });
      expect(revisionOf(read)).toBeGreaterThanOrEqual(revisionOf(written));
    }
  } finally {
    await watcher.cancel();
  }
});
