/** `remora/migrate` with the real other systems, and with services that lock there as they always did. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Etcd3 } from 'etcd3';
import zooKeeper, { type Client as ZooKeeperSession } from 'node-zookeeper-client';
import { connect, type RemoraClient } from 'remora';
import { BothLocks, etcdLocks, type OtherLocks, recipeLocks, redisLocks, zooKeeperLocks } from 'remora/migrate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { as, contract, KEPT, TTL_MS } from '../support/other-locks.ts';
import { Etcdctl, missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { hasEtcd, RealEtcd } from './etcd-twins/real-etcd.ts';
import { eventually, pause } from './eventually.ts';
import { Cluster } from './harness.ts';
import { CuratorService, missingCurator } from './migrate/curator.ts';
import { missingZooKeeper, RealZooKeeper } from './migrate/real-zookeeper.ts';
import { missingRedis, RedisServers } from './redlock/redis-servers.ts';

let cluster: Cluster;
let client: RemoraClient;
beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
  client = await connect({ endpoints: cluster.endpoints });
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});

const AS = as('an owner');
/** How long a client of ZooKeeper waits before it connects again. */
const RECONNECT_MS = 1_000;

describeWith(missingRedis(), 'with Redis', () => {
  let servers: RedisServers;
  beforeAll(async () => {
    servers = await RedisServers.start(1);
  });
  afterAll(() => servers?.stop());

  const redis = () => {
    const [connection] = servers.clients();
    if (connection === undefined) throw new Error('there is no server');
    return connection;
  };

  test('its locks keep the contract', async () => {
    expect(await contract(redisLocks(redis()), 'contract')).toEqual(KEPT);
  });

  test('a lock in both excludes SET NX, and waits for it', async () => {
    const plain = redis();
    const both = new BothLocks(client, redisLocks(redis()), { otherName: (name) => `lock:${name}` });
    expect(await plain.set('lock:a', 'mine', 'PX', TTL_MS, 'NX')).toBe('OK');
    await expect(both.acquire('a', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
    const waiting = both.acquire('a');
    await plain.del('lock:a');
    const held = await waiting;
    expect(await plain.set('lock:a', 'mine', 'PX', TTL_MS, 'NX')).toBeNull();
    expect(await client.lock('a').tryAcquire()).toBeUndefined();
    await held.release();
    expect(await plain.exists('lock:a')).toBe(0);
  });
});

describe('with the recipe of etcd', () => {
  test('its locks keep the contract', async () => {
    expect(await contract(recipeLocks(client), 'contract')).toEqual(KEPT);
  });

  test('a lock is lost when its key is deleted', async () => {
    const held = await recipeLocks(client).tryAcquire('deleted', as(''));
    await client.kv.delete({ prefix: 'deleted/' });
    expect(await held?.renew()).toBe(false);
  });

  test('of several that ask at once, one gets the lock at most', async () => {
    const asked = await Promise.all(Array.from({ length: 5 }, () => recipeLocks(client).tryAcquire('raced', as(''))));
    expect(asked.filter((each) => each !== undefined).length).toBeLessThanOrEqual(1);
    await Promise.all(asked.map((each) => each?.release()));
    expect((await client.kv.range({ prefix: 'raced/' })).kvs).toEqual([]);
  });

  describeWith(missingEtcdctl(), 'etcdctl lock', () => {
    test('and a lock in both exclude each other', async () => {
      const waiters = async () => (await client.kv.range({ prefix: 'e/' })).kvs.length;
      await excludesEtcdctl(cluster.endpoints[0] ?? '', recipeLocks(client), waiters);
    });
  });
});

/** `etcdctl lock` and a lock in both wait for each other. `entered` counts the keys of the lock `e`. */
async function excludesEtcdctl(endpoint: string, locks: OtherLocks, entered: () => Promise<number>): Promise<void> {
  const both = new BothLocks(client, locks);
  const first = new Etcdctl(endpoint, ['lock', 'e']);
  await first.says(/e\//);
  await expect(both.acquire('e', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
  const waiting = both.acquire('e');
  await first.interrupt();
  const held = await waiting;
  const second = new Etcdctl(endpoint, ['lock', 'e', 'echo', 'got it']);
  await eventually('it waits', async () => (await entered()) === 2);
  await held.release();
  expect(await second.end()).toMatchObject({ code: 0, out: expect.stringContaining('got it') });
}

describeWith(hasEtcd ? undefined : 'etcd is not installed; on Debian: apt-get install etcd-server', 'with etcd', () => {
  const server = new RealEtcd();
  let etcd: Etcd3;
  beforeAll(async () => {
    await server.start();
    etcd = new Etcd3({ hosts: server.endpoint });
  });
  afterAll(() => {
    etcd?.close();
    server.stop();
  });

  test.each(['recipe', 'etcd3'] as const)('its locks as %s keep the contract, in a namespace, too', async (as) => {
    expect(await contract(etcdLocks(etcd, { as }), `contract-${as}`)).toEqual(KEPT);
    expect(await contract(etcdLocks(etcd.namespace('team/'), { as }), `contract-${as}`)).toEqual(KEPT);
    expect(await etcd.getAll().count()).toBe(0);
  });

  test.each(['recipe', 'etcd3'] as const)('a lock as %s is lost when its key is deleted', async (as) => {
    const held = await etcdLocks(etcd, { as }).tryAcquire('deleted', AS);
    await etcd.delete().prefix('deleted');
    expect(await held?.renew()).toBe(false);
    await held?.release();
  });

  test.each(['recipe', 'etcd3'] as const)('a lock as %s is lost when its lease is revoked', async (as) => {
    const held = await etcdLocks(etcd, { as }).tryAcquire('revoked', AS);
    const { kvs } = await etcd.getAll().prefix('revoked').exec();
    await etcd.leaseClient.leaseRevoke({ ID: kvs[0]?.lease ?? '' });
    expect(await held?.renew()).toBe(false);
    await held?.release();
  });

  test('of several that ask at once, one gets the lock at most', async () => {
    const asked = await Promise.all(Array.from({ length: 5 }, () => etcdLocks(etcd).tryAcquire('raced', AS)));
    expect(asked.filter((each) => each !== undefined).length).toBeLessThanOrEqual(1);
    await Promise.all(asked.map((each) => each?.release()));
    expect(await etcd.getAll().count()).toBe(0);
  });

  test('a lock of etcd3 and a lock in both exclude each other', async () => {
    const both = new BothLocks(client, etcdLocks(etcd, { as: 'etcd3' }));
    const plain = await etcd.lock('m').acquire();
    await expect(both.acquire('m', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
    const waiting = both.acquire('m');
    await plain.release();
    const held = await waiting;
    await expect(etcd.lock('m').acquire()).rejects.toThrow('Failed to acquire');
    await held.release();
    await etcd.lock('m').do(() => {});
  });

  describeWith(missingEtcdctl(), 'etcdctl lock', () => {
    test('and a lock in both exclude each other', async () => {
      await excludesEtcdctl(server.endpoint, etcdLocks(etcd), () => etcd.getAll().prefix('e/').count());
    });
  });

  test('a renewal that does not reach it rejects', async () => {
    const held = await etcdLocks(etcd).tryAcquire('unreached', AS);
    server.stop();
    await expect(held?.renew()).rejects.toThrow();
  });
});

describeWith(missingZooKeeper(), 'with ZooKeeper', () => {
  let server: RealZooKeeper;
  let session: ZooKeeperSession;
  beforeAll(async () => {
    server = await RealZooKeeper.start();
    session = await server.client(45_000);
  }, 90_000);
  afterAll(() => server?.stop());

  const childrenOf = (path: string): Promise<readonly string[] | undefined> =>
    new Promise((resolve) => session.getChildren(path, (_, children) => resolve(children)));

  test('its locks keep the contract', async () => {
    expect(await contract(zooKeeperLocks(session), '/new/contract')).toEqual(KEPT);
    expect([await childrenOf('/new'), await childrenOf('/new/contract')]).toEqual([[], undefined]);
  });

  test('a lock is lost when its node is deleted', async () => {
    const held = await zooKeeperLocks(session).tryAcquire('/deleted', AS);
    const [node = ''] = (await childrenOf('/deleted')) ?? [];
    await new Promise((resolve) => session.remove(`/deleted/${node}`, resolve));
    expect([node, await held?.renew()]).toEqual([expect.stringMatching(/^_c_an owner-lock-\d{10}$/), false]);
  });

  test('a lock is lost with the session, and its node is gone', async () => {
    const other = await server.client(45_000);
    const held = await zooKeeperLocks(other).tryAcquire('/expires', AS);
    await endSession(other);
    expect([await held?.renew(), await held?.release(), await childrenOf('/expires')]).toEqual([false, undefined, []]);
  });

  /** Closes the session from another connection. If the client takes it back first, closes it again. */
  async function endSession(client: ZooKeeperSession): Promise<void> {
    let hasEnded = false;
    client.once('expired', () => {
      hasEnded = true;
    });
    while (!hasEnded) {
      const same = { sessionId: client.getSessionId(), sessionPassword: client.getSessionPassword() };
      const taker = zooKeeper.createClient(server.endpoint, { sessionTimeout: 45_000, ...same } as object);
      taker.once('connected', () => taker.close());
      taker.connect();
      await pause(RECONNECT_MS);
      taker.close();
    }
  }

  test('of several that ask at once, one gets the lock at most', async () => {
    const ask = (_: unknown, at: number) => zooKeeperLocks(session).tryAcquire('/raced', as(String(at)));
    const asked = await Promise.all(Array.from({ length: 5 }, ask));
    expect(asked.filter((each) => each !== undefined)).toHaveLength(1);
    await Promise.all(asked.map((each) => each?.release()));
  });

  describeWith(missingCurator(), 'Curator', () => {
    const otherName = (name: string) => `/locks/${name}`;
    const services: CuratorService[] = [];
    const start = (...args: readonly string[]) => {
      const service = new CuratorService(...args);
      services.push(service);
      return service;
    };
    afterAll(() => {
      for (const service of services) service.kill();
    });

    test('and a lock in both exclude each other', async () => {
      const both = new BothLocks(client, zooKeeperLocks(session), { otherName });
      const first = start('hold', server.endpoint, '/locks/z');
      await first.says('held');
      await expect(both.acquire('z', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
      const waiting = both.acquire('z');
      expect(await first.release()).toBe(0);
      const held = await waiting;
      const second = start('hold', server.endpoint, '/locks/z');
      await eventually('it waits', async () => (await childrenOf('/locks/z'))?.length === 2);
      await held.release();
      await second.says('held');
      expect(await second.release()).toBe(0);
    });

    test('and a lock in both lose no update of each other', async () => {
      const file = join(tmpdir(), `remora-migrate-${process.pid}`);
      writeFileSync(file, '0');
      const both = new BothLocks(client, zooKeeperLocks(session), { otherName, poll: 1 });
      const service = start('count', server.endpoint, '/locks/counted', file, '100');
      await service.says('counts');
      for (let i = 0; i < 50; i++) {
        await both.run('counted', async () => {
          const number = Number(readFileSync(file, 'utf8'));
          await new Promise((resolve) => setTimeout(resolve, 2));
          writeFileSync(file, String(number + 1));
        });
      }
      expect([await service.end(), readFileSync(file, 'utf8')]).toEqual([0, '150']);
      rmSync(file);
    });
  });

  test('a renewal that does not reach it rejects', async () => {
    const held = await zooKeeperLocks(session).tryAcquire('/unreached', AS);
    await server.end();
    await expect(held?.renew()).rejects.toThrow();
    await expect(zooKeeperLocks(session).tryAcquire('/unreached', AS)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});
