/** `zooKeeperLocks` on a ZooKeeper in memory, whose connection breaks where the test says. */
import { setImmediate as settled } from 'node:timers/promises';
import { type OtherLock, type OtherLocks, type ZooKeeperClient, zooKeeperLocks } from 'remora/migrate';
import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryZooKeeper, type MemoryZooKeeperClient } from '../support/memory-zookeeper.ts';
import { as, contract, KEPT, TTL_MS } from '../support/other-locks.ts';

let server: MemoryZooKeeper;
let client: MemoryZooKeeperClient;
let locks: OtherLocks;
beforeEach(() => {
  server = new MemoryZooKeeper();
  client = server.client();
  locks = zooKeeperLocks(client);
});

const OURS = '_c_us-lock-0000000000';
const tryAcquire = () => locks.tryAcquire('/l', as('us'));
async function acquire(): Promise<OtherLock> {
  const held = await tryAcquire();
  if (held === undefined) throw new Error('it is taken');
  return held;
}

test('they keep the contract', async () => {
  expect(await contract(locks, '/a/b/c')).toEqual(KEPT);
});

describe('a lock', () => {
  test('is a node as Curator creates it, below the node of the lock', async () => {
    await acquire();
    expect([...server.nodes.keys()]).toEqual(['/l', `/l/${OURS}`]);
  });

  test('that is taken is looked at only', async () => {
    server.put('/l');
    server.put('/l/_c_them-lock-0000000007');
    expect([await tryAcquire(), client.calls]).toEqual([undefined, ['getChildren /l']]);
  });

  test('belongs to the lowest number, whatever stands before it', async () => {
    server.put('/l');
    // Another one enters after we looked, and before we enter.
    client.before.set('create', () => {
      server.nodes.set('/l', { owner: undefined, next: 8 });
      server.put('/l/_c_zz-lock-0000000007');
    });
    expect(await tryAcquire()).toBeUndefined();
    expect(server.children('/l')).toEqual(['_c_zz-lock-0000000007']);
  });

  test('does not mind nodes that are no holders', async () => {
    for (const path of ['/l', '/l/config', '/l/42', '/l/_c_them-lock-next']) server.put(path);
    await acquire();
  });

  test.each([
    { name: 'that was not there goes with it', given: () => {}, left: [] },
    { name: 'that was there stays', given: () => server.put('/l'), left: ['/l'] },
  ])('the node of a lock $name', async ({ given, left }) => {
    given();
    await (await acquire()).release();
    expect([...server.nodes.keys()]).toEqual(left);
  });

  test('the node of a lock stays if somebody waits', async () => {
    const held = await acquire();
    server.put('/l/_c_them-lock-0000000001');
    await held.release();
    expect([...server.nodes.keys()]).toEqual(['/l', '/l/_c_them-lock-0000000001']);
  });

  test('is lost when its node is deleted', async () => {
    const held = await acquire();
    server.remove(`/l/${OURS}`);
    expect(await held.renew()).toBe(false);
    await held.release();
  });

  test('is acquired although others delete its empty node, as servers delete empty containers', async () => {
    server.put('/l');
    client.before.set('create', () => server.remove('/l'));
    await acquire();
  });

  test('rejects if others delete its empty node again and again', async () => {
    const create = client.create.bind(client);
    client.create = (path, data, mode, done) => {
      if (path !== '/l') server.nodes.delete('/l');
      create(path, data, mode, done);
    };
    await expect(tryAcquire()).rejects.toMatchObject({ name: 'noNode' });
    expect(client.calls.filter((call) => call.startsWith('create /l/'))).toHaveLength(3);
  });
});

describe('when the connection breaks', () => {
  /** Connects again, and lets the client do what it does then. */
  async function reconnect(): Promise<void> {
    client.connect();
    await settled();
  }

  test.each([
    { call: 'create', at: 'after' },
    { call: 'create', at: 'before' },
    { call: 'remove', at: 'before' },
    { call: 'remove', at: 'after' },
  ] as const)('$at the server applies a $call, no node is left', async ({ call, at }) => {
    server.put('/l');
    client.breaksAt.set(call, at);
    const attempt = call === 'create' ? tryAcquire() : acquire().then((held) => held.release());
    await expect(attempt).rejects.toMatchObject({ name: 'connectionLoss' });
    await reconnect();
    expect(server.children('/l')).toEqual([]);
    await acquire();
  });

  test('after the node was created, no node is left', async () => {
    server.put('/l');
    client.before.set('create', () => client.breaksAt.set('getChildren', 'before'));
    await expect(tryAcquire()).rejects.toMatchObject({ name: 'connectionLoss' });
    expect(server.children('/l')).toEqual([OURS]);
    await reconnect();
    expect(server.children('/l')).toEqual([]);
  });

  test('again while the node is looked for, it is looked for once more', async () => {
    server.put('/l');
    client.breaksAt.set('create', 'after');
    await expect(tryAcquire()).rejects.toThrow();
    client.breaksAt.set('remove', 'before');
    await reconnect();
    expect(server.children('/l')).toEqual([OURS]);
    await reconnect();
    expect(server.children('/l')).toEqual([]);
  });

  test('a write precedes the search for the node, so that no server answers from a state without it', async () => {
    client.breaksAt.set('create', 'before');
    await expect(tryAcquire()).rejects.toThrow();
    client.calls.length = 0;
    await reconnect();
    expect(client.calls).toEqual(['remove /l/_c_us-none', 'getChildren /l']);
  });

  test('a held lock is renewed once it is connected again', async () => {
    const held = await acquire();
    client.disconnect();
    await expect(held.renew()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(locks.tryAcquire('/other', as('us'))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await reconnect();
    expect(await held.renew()).toBe(true);
  });

  test('calls end that wait to be sent', async () => {
    const held = await acquire();
    client.stalled = true;
    const renewed = held.renew();
    client.disconnect();
    await expect(renewed).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

test('of several nodes, which a client creates that repeats its calls, one is kept', async () => {
  server.put('/l');
  client.before.set('create', () => server.create('/l/_c_us-lock-', 3, client));
  const held = await acquire();
  expect(server.children('/l')).toEqual([OURS]);
  await held.release();
  expect(server.children('/l')).toEqual([]);
});

describe('when the session expires', () => {
  test('its locks are lost, and released', async () => {
    const held = await acquire();
    client.stalled = true;
    const renewed = held.renew();
    client.expire();
    expect([await renewed, await held.renew(), await held.release()]).toEqual([false, false, undefined]);
  });

  test('nothing is looked for any more', async () => {
    client.breaksAt.set('create', 'after');
    await expect(tryAcquire()).rejects.toThrow();
    client.expire();
    client.calls.length = 0;
    client.connect();
    await settled();
    expect(client.calls).toEqual([]);
  });

  test('a function may return the next client', async () => {
    locks = zooKeeperLocks(() => client);
    const held = await acquire();
    client.expire();
    await expect(tryAcquire()).rejects.toThrow('the session of the client of ZooKeeper has expired');
    client = server.client();
    await acquire();
    expect(await held.renew()).toBe(false);
  });
});

test('a client is listened to once, however many locks it has', async () => {
  for (let i = 0; i < 20; i++) zooKeeperLocks(client);
  await acquire();
  expect([client.listenerCount('disconnected'), client.listenerCount('expired')]).toEqual([1, 1]);
});

test('a TTL is refused that a session may not outlive', async () => {
  locks = zooKeeperLocks(server.client(TTL_MS * 1.5 - 1));
  await expect(tryAcquire()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await expect(tryAcquire()).rejects.toThrow('timeout of 44999 ms allows at most 29999 ms, got 30000 ms');
  locks = zooKeeperLocks(server.client(TTL_MS * 1.5));
  await acquire();
});

test.each(['', 'l', '/', '/l/', '//l', '/a//l', '/./l', '/a/..', 'a/l'])('the name %j is refused', async (name) => {
  await expect(locks.tryAcquire(name, as('us'))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(client.calls).toEqual([]);
});

test('what is no client is refused, also when a function returns it', async () => {
  const refusal = { code: 'INVALID_ARGUMENT' };
  expect(() => zooKeeperLocks({} as ZooKeeperClient)).toThrow(expect.objectContaining(refusal));
  const none = zooKeeperLocks(() => undefined as unknown as ZooKeeperClient);
  await expect(none.tryAcquire('/l', as('us'))).rejects.toMatchObject(refusal);
});
