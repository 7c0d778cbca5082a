/** `etcdLocks` on an etcd in memory, whose calls fail where the test says. */
import { type EtcdClient, etcdLocks, type OtherLock } from 'remora/migrate';
import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryEtcd } from '../support/memory-etcd.ts';
import { as, contract, KEPT, TTL_MS } from '../support/other-locks.ts';

let etcd: MemoryEtcd;
beforeEach(() => {
  etcd = new MemoryEtcd();
});

const keys = (): readonly string[] => [...etcd.keys.keys()];

describe.each([
  { form: 'recipe', key: 'l/a', write: 'put' },
  { form: 'etcd3', key: 'l', write: 'txn' },
] as const)('a lock as $form', ({ form, key, write }) => {
  const tryAcquire = (ttlMs = TTL_MS) => etcdLocks(etcd, { as: form }).tryAcquire('l', { ...as('us'), ttlMs });
  async function acquire(ttlMs?: number): Promise<OtherLock> {
    const held = await tryAcquire(ttlMs);
    if (held === undefined) throw new Error('it is taken');
    return held;
  }

  test('keeps the contract', async () => {
    expect(await contract(etcdLocks(etcd, { as: form }), 'l')).toEqual(KEPT);
    expect(keys()).toEqual([]);
  });

  test('is a key with a lease that nothing but a renewal renews, of whole seconds', async () => {
    await acquire(1_001);
    expect([keys(), etcd.granted]).toEqual([[key], [{ ttlSeconds: 2, autoKeepAlive: false }]]);
    etcd.pass(1_999);
    expect(keys()).toEqual([key]);
    etcd.pass(1);
    expect(keys()).toEqual([]);
  });

  test('that is taken is looked at only', async () => {
    etcd.put(form === 'etcd3' ? 'l' : 'l/7');
    expect([await tryAcquire(), etcd.granted]).toEqual([undefined, []]);
  });

  test('is not acquired if another service is faster, and leaves nothing', async () => {
    etcd.before.set(write, () => etcd.put(form === 'etcd3' ? 'l' : 'l/7'));
    expect(await tryAcquire()).toBeUndefined();
    expect(keys()).toEqual([form === 'etcd3' ? 'l' : 'l/7']);
  });

  test('is held for its TTL from each renewal on, and lost then', async () => {
    const held = await acquire();
    etcd.pass(TTL_MS - 1);
    expect(await held.renew()).toBe(true);
    etcd.pass(TTL_MS - 1);
    expect(await held.renew()).toBe(true);
    etcd.pass(TTL_MS);
    expect(await held.renew()).toBe(false);
    await held.release();
  });

  test.each([
    { name: 'deleted', act: () => etcd.keys.delete(key) },
    { name: 'put again by somebody', act: () => etcd.put(key) },
  ])('is lost when its key is $name', async ({ act }) => {
    const held = await acquire();
    act();
    expect(await held.renew()).toBe(false);
  });

  test.each(['before', 'after'] as const)('whose write fails %s etcd applied it leaves nothing', async (at) => {
    etcd.failsAt.set(write, at);
    await expect(tryAcquire()).rejects.toThrow('UNAVAILABLE');
    expect(keys()).toEqual([]);
  });

  test('whose write and revocation fail ends by its TTL', async () => {
    etcd.failsAt.set(write, 'after').set('revoke', 'before');
    await expect(tryAcquire()).rejects.toThrow('UNAVAILABLE');
    expect(keys()).toEqual([key]);
    etcd.pass(TTL_MS);
    expect(keys()).toEqual([]);
  });

  test.each(['keepAlive', 'range'] as const)('that cannot be renewed rejects: the %s fails', async (call) => {
    const held = await acquire();
    etcd.failsAt.set(call, 'before');
    await expect(held.renew()).rejects.toThrow('UNAVAILABLE');
    expect(await held.renew()).toBe(true);
  });

  test('that cannot be released rejects, and ends by its TTL', async () => {
    const held = await acquire();
    etcd.failsAt.set('revoke', 'before');
    await expect(held.release()).rejects.toThrow('UNAVAILABLE');
    etcd.pass(TTL_MS);
    expect(keys()).toEqual([]);
  });
});

test('the recipe writes a lease without its sign, as etcdctl does', async () => {
  etcd = new MemoryEtcd({ lease: -1n });
  await etcdLocks(etcd).tryAcquire('l', as('us'));
  expect(keys()).toEqual(['l/ffffffffffffffff']);
});

test.each([null, 5, {}, { lease: () => {} }])('%j is no client, and refused', (client) => {
  expect(() => etcdLocks(client as unknown as EtcdClient)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/a client of etcd3.*no method/),
    }),
  );
});
