import { Etcd3, EtcdLeaseInvalidError, EtcdLockFailedError, type IKeyValue } from 'etcd3';
import { expect } from 'vitest';

/**
 * What users of the npm client `etcd3` do, as functions of the endpoints, so that the same scenarios run against a
 * gateway alone and against a real cluster. Each works under a prefix of its own and leaves other keys alone.
 */
export interface Scenario {
  readonly name: string;
  /** Its keys begin with `prefix`, which is one of its own unless given; a small letter follows as a rule. */
  run(endpoints: readonly string[], prefix?: string): Promise<void>;
}

function scenario(name: string, use: (client: Etcd3, prefix: string) => Promise<void>): Scenario {
  return {
    name,
    async run(endpoints, prefix = `${name}/${process.hrtime.bigint()}/`) {
      const client = new Etcd3({ hosts: [...endpoints] });
      try {
        await use(client, prefix);
      } finally {
        client.close();
      }
    },
  };
}

async function until<T>(what: string, probe: () => T | undefined | Promise<T | undefined>, timeoutMs = 60_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (Date.now() > end) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const etcd3Scenarios: readonly Scenario[] = [
  scenario('a put is read back, with growing versions and revisions', async (client, prefix) => {
    const key = `${prefix}key`;
    expect(await client.get(key).string()).toBeNull();
    const first = await client.put(key).value('one');
    const second = await client.put(key).value('two');
    expect(Number(second.header.revision)).toBeGreaterThan(Number(first.header.revision));
    const read = await client.get(key).exec();
    expect(read.kvs).toHaveLength(1);
    const [kv] = read.kvs;
    expect(kv?.value.toString()).toBe('two');
    expect(kv?.version).toBe('2');
    expect(kv?.create_revision).toBe(first.header.revision);
    expect(kv?.mod_revision).toBe(second.header.revision);
    expect(await client.get(key).revision(first.header.revision).string()).toBe('one');
    expect(await client.get(key).number()).toBeNaN();
  }),

  scenario('values are bytes, and may be empty', async (client, prefix) => {
    const bytes = Buffer.from([0, 255, 128, 10, 0]);
    await client.put(`${prefix}bytes`).value(bytes);
    await client.put(`${prefix}empty`).value('');
    expect(await client.get(`${prefix}bytes`).buffer()).toEqual(bytes);
    expect(await client.get(`${prefix}empty`).string()).toBe('');
    expect(await client.get(`${prefix}empty`).exists()).toBe(true);
  }),

  scenario('a prefix is read with order, limit, count and keys', async (client, prefix) => {
    for (const name of ['b', 'a', 'c']) await client.put(`${prefix}${name}`).value(`value ${name}`);
    await client.put(`${prefix.slice(0, -1)}0`).value('a neighbour');
    const all = () => client.getAll().prefix(prefix);
    expect(Object.values(await all().strings())).toEqual(['value a', 'value b', 'value c']);
    expect(await all().sort('Key', 'Descend').keys()).toEqual([`${prefix}c`, `${prefix}b`, `${prefix}a`]);
    expect(await all().sort('Mod', 'Ascend').keys()).toEqual([`${prefix}b`, `${prefix}a`, `${prefix}c`]);
    expect(await all().count()).toBe(3);
    const limited = await all().limit(2).exec();
    expect(limited.kvs).toHaveLength(2);
    expect(limited.more).toBe(true);
    expect(limited.count).toBe('3');
  }),

  scenario('deleting says how many and what', async (client, prefix) => {
    for (const name of ['a', 'b', 'c']) await client.put(`${prefix}${name}`).value(name);
    const previous = await client.delete().key(`${prefix}a`).getPrevious();
    expect(previous.map((kv: IKeyValue) => kv.value.toString())).toEqual(['a']);
    expect((await client.delete().key(`${prefix}a`)).deleted).toBe('0');
    expect((await client.delete().prefix(prefix)).deleted).toBe('2');
    expect(await client.getAll().prefix(prefix).count()).toBe(0);
  }),

  scenario('a transaction takes one branch, whole', async (client, prefix) => {
    const key = `${prefix}key`;
    const once = () =>
      client
        .if(key, 'Create', '==', 0)
        .then(client.put(key).value('created'), client.put(`${key}2`).value('too'))
        .else(client.get(key), client.delete().key(`${key}2`))
        .commit();
    const first = await once();
    expect(first.succeeded).toBe(true);
    expect(first.responses.map((each) => each.response_put?.header.revision)).toEqual([
      first.header.revision,
      first.header.revision,
    ]);
    expect(await client.get(`${key}2`).string()).toBe('too');
    const second = await once();
    expect(second.succeeded).toBe(false);
    expect(second.responses[0]?.response_range?.kvs[0]?.value.toString()).toBe('created');
    expect(second.responses[1]?.response_delete_range?.deleted).toBe('1');
    expect(await client.get(`${key}2`).string()).toBeNull();
    const byValue = await client.if(key, 'Value', '==', 'created').then(client.put(key).value('changed')).commit();
    expect(byValue.succeeded).toBe(true);
    expect(await client.get(key).string()).toBe('changed');
  }),

  scenario('a transaction over many keys is whole, and shows one revision', async (client, prefix) => {
    const keys = ['a', 'b', 'c'].map((name) => prefix + name);
    const [a = '', b = '', c = ''] = keys;
    const turn = (value: string, version: number) =>
      client
        .if(a, 'Version', '==', version)
        .and(b, 'Version', '==', version)
        .and(c, 'Version', '==', version)
        .then(...keys.map((key) => client.put(key).value(value)), client.getAll().prefix(prefix))
        .else(client.delete().prefix(prefix), client.getAll().prefix(prefix))
        .commit();
    const values = async () => Object.values(await client.getAll().prefix(prefix).strings());
    for (const [i, value] of ['one', 'two'].entries()) {
      const { succeeded, header, responses } = await turn(value, i);
      expect(succeeded).toBe(true);
      const read = responses[3]?.response_range?.kvs ?? [];
      expect(read.map((kv) => [kv.value.toString(), kv.mod_revision])).toEqual(
        keys.map(() => [value, header.revision]),
      );
      expect(await values()).toEqual([value, value, value]);
    }
    const { succeeded, responses } = await turn('never', 1);
    expect(succeeded).toBe(false);
    expect(responses[0]?.response_delete_range?.deleted).toBe('3');
    expect(responses[1]?.response_range?.count).toBe('0');
    expect(await values()).toEqual([]);
  }),

  scenario('transactions that race for many keys exclude each other', async (client, prefix) => {
    const keys = ['a', 'b', 'c'].map((name) => prefix + name);
    const claim = (owner: string) =>
      keys
        .slice(1)
        .reduce((txn, key) => txn.and(key, 'Create', '==', 0), client.if(keys[0] ?? '', 'Create', '==', 0))
        .then(...keys.map((key) => client.put(key).value(owner)))
        .commit();
    const owners = ['1', '2', '3', '4', '5', '6'];
    const claims = await Promise.all(owners.map((owner) => claim(owner)));
    const won = owners.filter((_, i) => claims[i]?.succeeded);
    expect(won).toHaveLength(1);
    expect(Object.values(await client.getAll().prefix(prefix).strings())).toEqual([won[0], won[0], won[0]]);
  }),

  scenario('a transaction that puts a key twice is refused', async (client, prefix) => {
    const put = client.put(`${prefix}key`).value('x');
    await expect(client.if(`${prefix}key`, 'Version', '==', 0).then(put, put).commit()).rejects.toThrow(
      'etcdserver: duplicate key given in txn request',
    );
    expect(await client.get(`${prefix}key`).exists()).toBe(false);
  }),

  scenario('a watch sees every change of its prefix, in order, with what was before', async (client, prefix) => {
    const watcher = await client.watch().prefix(prefix).withPreviousKV().create();
    const seen: string[] = [];
    watcher.on('put', (kv, previous) => {
      seen.push(`put ${kv.key.toString().slice(prefix.length)}=${kv.value} was ${previous?.value ?? 'absent'}`);
    });
    watcher.on('delete', (kv, previous) => {
      seen.push(`delete ${kv.key.toString().slice(prefix.length)} was ${previous?.value ?? 'absent'}`);
    });
    for (let i = 0; i < 20; i++) await client.put(`${prefix}a`).value(i);
    await client.put(`${prefix}b`).value('x');
    await client.delete().prefix(prefix);
    await until('all events are there', () => (seen.length >= 23 ? true : undefined));
    const puts = Array.from({ length: 20 }, (_, i) => `put a=${i} was ${i === 0 ? 'absent' : i - 1}`);
    expect(seen).toEqual([...puts, 'put b=x was absent', 'delete a was 19', 'delete b was x']);
    await watcher.cancel();
  }),

  scenario('a watch starts in the past', async (client, prefix) => {
    const { header } = await client.put(`${prefix}key`).value('1');
    await client.put(`${prefix}key`).value('2');
    await client.delete().key(`${prefix}key`);
    const seen: string[] = [];
    const watcher = client.watch().key(`${prefix}key`).startRevision(header.revision).watcher();
    watcher.on('put', (kv) => seen.push(kv.value.toString()));
    watcher.on('delete', () => seen.push('deleted'));
    await until('the past was told', () => (seen.length >= 3 ? true : undefined));
    expect(seen).toEqual(['1', '2', 'deleted']);
    await watcher.cancel();
  }),

  scenario('a cancelled watch says nothing more, and others on its stream go on', async (client, prefix) => {
    const [first, second] = await Promise.all([
      client.watch().key(`${prefix}key`).create(),
      client.watch().key(`${prefix}key`).create(),
    ]);
    const seen: string[] = [];
    first.on('put', () => seen.push('first'));
    second.on('put', () => seen.push('second'));
    await client.put(`${prefix}key`).value('1');
    await until('both have seen it', () => (seen.length >= 2 ? true : undefined));
    await first.cancel();
    await client.put(`${prefix}key`).value('2');
    await until('the second has seen it', () => (seen.length >= 3 ? true : undefined));
    expect(seen.filter((name) => name === 'first')).toHaveLength(1);
    await second.cancel();
  }),

  scenario('filters leave puts or deletes out', async (client, prefix) => {
    const puts = await client.watch().key(`${prefix}key`).only('put').create();
    const deletes = await client.watch().key(`${prefix}key`).only('delete').create();
    const seen: string[] = [];
    for (const [name, watcher] of [
      ['puts', puts],
      ['deletes', deletes],
    ] as const) {
      watcher.on('put', () => seen.push(`${name}: put`));
      watcher.on('delete', () => seen.push(`${name}: delete`));
    }
    await client.put(`${prefix}key`).value('1');
    await client.delete().key(`${prefix}key`);
    await client.put(`${prefix}key`).value('2');
    await until('all events are there', () => (seen.length >= 3 ? true : undefined));
    expect(seen.sort()).toEqual(['deletes: delete', 'puts: put', 'puts: put']);
    await puts.cancel();
    await deletes.cancel();
  }),

  scenario(
    'a lease that is kept alive outlives its TTL, and its keys go when it is revoked',
    async (client, prefix) => {
      const lease = client.lease(2);
      await lease.put(`${prefix}key`).value('leased');
      await new Promise((resolve) => setTimeout(resolve, 3_500));
      expect(await client.get(`${prefix}key`).string()).toBe('leased');
      await lease.revoke();
      expect(await client.get(`${prefix}key`).string()).toBeNull();
    },
  ),

  scenario(
    'at the revision of the answer to a revoke none of the many keys of the lease is left',
    async (client, prefix) => {
      const lease = client.lease(60);
      const id = await lease.grant();
      const letters = ['a', 'b', 'c'];
      for (let first = 0; first < 2_500; first += 100) {
        const keys = Array.from({ length: 100 }, (_, i) => `${prefix}${letters[i % 3]}${first + i}`);
        await client
          .if(`${prefix}none`, 'Version', '==', 0)
          .then(...keys.map((key) => client.put(key).value('leased').lease(id)))
          .commit();
      }
      expect(await client.getAll().prefix(prefix).count()).toBe(2_500);
      const { header } = await client.leaseClient.leaseRevoke({ ID: id });
      const then = client.getAll().prefix(prefix).revision(header.revision);
      expect(await then.count()).toBe(0);
      lease.release();
    },
  ),

  scenario('a lease that is not kept alive expires, and takes its keys along', async (client, prefix) => {
    const lease = client.lease(2, { autoKeepAlive: false });
    await lease.put(`${prefix}key`).value('leased');
    expect((await lease.keepaliveOnce()).TTL).toBe('2');
    const watcher = await client.watch().key(`${prefix}key`).create();
    const deleted = new Promise((resolve) => watcher.once('delete', resolve));
    await deleted;
    expect(await client.get(`${prefix}key`).exists()).toBe(false);
    await expect(lease.keepaliveOnce()).rejects.toThrow(EtcdLeaseInvalidError);
    await watcher.cancel();
  }),

  scenario('a put under a lease that does not exist is refused', async (client, prefix) => {
    await expect(client.put(`${prefix}key`).value('x').lease(123_456_789)).rejects.toThrow(EtcdLeaseInvalidError);
    expect(await client.get(`${prefix}key`).exists()).toBe(false);
  }),

  {
    name: "etcd3's own lock recipe excludes a second client",
    async run(endpoints) {
      const [one, two] = [new Etcd3({ hosts: [...endpoints] }), new Etcd3({ hosts: [...endpoints] })];
      const name = `lock-recipe/${process.hrtime.bigint()}`;
      try {
        const held = await one.lock(name).ttl(5).acquire();
        await expect(two.lock(name).acquire()).rejects.toThrow(EtcdLockFailedError);
        await held.release();
        let ran = false;
        await two.lock(name).do(async () => {
          ran = true;
          await expect(one.lock(name).acquire()).rejects.toThrow(EtcdLockFailedError);
        });
        expect(ran).toBe(true);
        await (await one.lock(name).acquire()).release();
      } finally {
        one.close();
        two.close();
      }
    },
  },
];
