/** `remora/migrate` with a real Redis, and with etcd's own lock command. */
import { connect, type RemoraClient } from 'remora';
import { BothLocks, type OtherLocks, recipeLocks, redisLocks } from 'remora/migrate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { Etcdctl, missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
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

const TTL_MS = 30_000;
const as = (owner: string) => ({ ttlMs: TTL_MS, owner });

/** What every other system has to do. */
async function contract(locks: OtherLocks, name: string): Promise<unknown> {
  const first = await locks.tryAcquire(name, as('first'));
  const second = await locks.tryAcquire(name, as('second'));
  const renewed = await first?.renew();
  await first?.release();
  const third = await locks.tryAcquire(name, as('third'));
  const late = [await first?.renew(), await first?.release()];
  const stillHeld = await third?.renew();
  await third?.release();
  return { first: first !== undefined, second, renewed, third: third !== undefined, late, stillHeld };
}
const KEPT = { first: true, second: undefined, renewed: true, third: true, late: [false, undefined], stillHeld: true };

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
      const endpoint = cluster.endpoints[0] ?? '';
      const both = new BothLocks(client, recipeLocks(client));
      const first = new Etcdctl(endpoint, ['lock', 'e']);
      await first.says(/e\//);
      await expect(both.acquire('e', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_BUSY' });
      const waiting = both.acquire('e');
      await first.interrupt();
      const held = await waiting;
      const second = new Etcdctl(endpoint, ['lock', 'e', 'echo', 'got it']);
      await eventually('it waits', async () => (await client.kv.range({ prefix: 'e/' })).kvs.length === 2);
      await held.release();
      expect(await second.end()).toMatchObject({ code: 0, out: expect.stringContaining('got it') });
    });
  });
});
