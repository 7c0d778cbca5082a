import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
afterEach(() => {
  expect(unhandled.splice(0)).toEqual([]);
});

async function microtasks(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

describe('locks of the SDK', () => {
  test('a grant that comes in one frame with the end of its session is no lock held', async () => {
    world = new World();
    const client = await world.client();
    const session = await world.until(client.session({ ttl: '60s' }));
    const granted = session.lock('x').acquire();
    await microtasks();
    const revoked = client.lease.revoke(session.lease);
    const refused = codeOf(session.lock('y').acquire());
    const outcome = await world.until(
      granted.then(
        (held) => [held.state, held.signal.aborted, held.remainingMs],
        (error) => error.code,
      ),
    );
    expect(outcome).toBe('SESSION_EXPIRED');
    await world.until(revoked);
    expect([await world.until(refused), session.state]).toEqual(['SESSION_EXPIRED', 'lost']);
  });

  test('the process lives as long as somebody waits for what is asked of a lock, also between two attempts', async () => {
    world = new World();
    const client = await world.client({ requestTimeout: '4s', sessionTtl: '60s' });
    const [held, shared] = [
      await world.until(client.lock('l').acquire()),
      await world.until(client.rwLock('rw').read()),
    ];
    expect(world.held).toBe(1); // for the session
    for (const asked of [() => held.acquire(), () => held.extend(), () => shared.upgrade()]) {
      for (const address of GATEWAYS) world.down.add(address);
      world.sever();
      await world.run(20);
      let pending = true;
      const done = codeOf(asked()).finally(() => {
        pending = false;
      });
      for (let passedMs = 0; pending && passedMs < 1_000; passedMs += 5) {
        expect(world.held).toBeGreaterThan(1);
        await world.run(5);
      }
      expect(pending).toBe(true);
      world.down.clear();
      expect(await world.until(done)).toBe('ok');
      expect(world.held).toBe(1);
    }
  });

  test('the process lives as long as somebody waits for the turn of a lock that its owner gave up to enter again', async () => {
    world = new World();
    const client = await world.client({ requestTimeout: '4s', sessionTtl: '60s' });
    const lock = client.rwLock('rw');
    for (const asked of ['setData', 'downgrade', 'release'] as const) {
      const held = await world.until(lock.write({ token: asked }));
      for (const address of GATEWAYS) world.isolated.add(address);
      // The turn is that of its cancel, in the background, for which nobody waits.
      expect(await world.until(codeOf(lock.write({ token: asked, wait: '100ms' })))).toBe('LOCK_TIMEOUT');
      await world.run(20);
      expect(world.held).toBe(1);
      const done = codeOf(asked === 'setData' ? held.setData('x') : held[asked]());
      await world.run(20);
      expect([asked, world.held]).toEqual([asked, 2]);
      world.isolated.clear();
      expect(await world.until(done)).toBe('ok');
      if (asked !== 'release') await world.until(held.release());
      expect(world.held).toBe(1);
    }
  });

  test('the process lives as long as its sessions do, also while no gateway is there: who holds a lock may only wait', async () => {
    world = new World();
    const client = await world.client({ sessionTtl: '10s' });
    expect(world.held).toBe(0);
    const held = await world.until(client.lock('l').acquire());
    for (const address of GATEWAYS) world.down.add(address);
    world.sever();
    await world.run(8_000);
    expect([held.state, world.held]).toEqual(['suspended', 1]);
    await world.run(2_000);
    expect([held.state, world.held]).toEqual(['lost', 0]);
    world.down.clear();
    await world.until(client.lock('l').acquire());
    expect(world.held).toBe(1);
    await world.until(client.close());
    expect(world.held).toBe(0);
  });

  test.each([{}, { ttl: '5s' } as const])(
    'a wait ends in time, also when there is no session yet: %j',
    async (lease) => {
      world = new World();
      const client = await world.client();
      for (const address of GATEWAYS) world.isolated.add(address);
      const startedMs = world.clock.monotonicMs();
      const waiting = client.lock('l').acquire({ wait: '2s', ...lease });
      await expect(world.until(waiting)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      expect(world.clock.monotonicMs() - startedMs).toBeLessThan(2_100);
      // What it had asked for comes all the same.
      world.isolated.clear();
      await world.run(5_000);
      expect(world.backend.sessions).toBe('ttl' in lease ? 0 : 1);
      expect((await world.until(client.lock('l').acquire({ wait: '2s' }))).state).toBe('active');
    },
  );

  test('what is acquired as the client closes, by who hears of that, leaves no session behind', async () => {
    world = new World();
    const client = await world.client();
    const held = await world.until(client.lock('l').acquire());
    let again: Promise<string> | undefined;
    held.signal.addEventListener('abort', () => {
      again = codeOf(client.lock('m').acquire());
    });
    await world.until(client.close());
    expect(await again).toBe('CANCELED');
    await world.run(200);
    expect(world.backend.sessions).toBe(0);
  });

  test('entering again what was taken away keeps nothing', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    await world.until(second.locks.forceRelease('l'));
    expect(await world.until(codeOf(held.acquire()))).toBe('LOCK_NOT_HELD');
    expect([held.state, held.signal.aborted]).toEqual(['lost', true]);
    await world.run(50);
    expect(await world.until(second.lock('l').tryAcquire())).toBeDefined();
  });

  test('what was taken away and given to another is not held, and needs no release', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const [held, disposed] = [
      await world.until(first.lock('l').acquire()),
      await world.until(first.lock('m').acquire()),
    ];
    for (const name of ['l', 'm']) {
      await world.until(second.locks.forceRelease(name));
      await world.until(second.lock(name).acquire());
    }
    expect(await world.until(codeOf(held.release()))).toBe('LOCK_NOT_HELD');
    expect(await world.until(codeOf(disposed[Symbol.asyncDispose]()))).toBe('ok');
  });

  test('what is released while it is being entered again is released', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    const again = codeOf(held.acquire());
    const released = held.release();
    expect(await world.until(Promise.all([again, codeOf(released)]))).toEqual(['ok', 'ok']);
    expect([held.state, held.depth]).toEqual(['active', 1]);
    const both = Promise.all([codeOf(held.release()), codeOf(held.acquire())]);
    expect(await world.until(both)).toEqual(['ok', 'LOCK_NOT_HELD']);
    await world.run(50);
    expect(await world.until(second.lock('l').tryAcquire())).toBeDefined();
  });

  test('a handle that is released twice takes nothing from one that came after it', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const lock = first.lock('l');
    const earlier = await world.until(lock.acquire({ token: 't' }));
    await world.until(earlier.release());
    const outer = await world.until(lock.acquire({ token: 't' }));
    await world.until(earlier.release());
    const inner = await world.until(lock.acquire({ token: 't' }));
    await world.until(inner.release());
    expect(await world.until(second.lock('l').tryAcquire())).toBeUndefined();
    expect(await world.until(outer.check())).toBe(true);
  });

  test('handles of one token hold until each of them has let go, in whatever order', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const outer = await world.until(first.lock('l').acquire({ token: 't' }));
    const inner = await world.until(first.lock('l').acquire({ token: 't' }));
    await world.until(outer.release());
    expect([outer.state, inner.state]).toEqual(['released', 'active']);
    expect(await world.until(inner.check())).toBe(true);
    expect(await world.until(second.lock('l').tryAcquire())).toBeUndefined();
    await world.until(inner.release());
    expect(await world.until(second.lock('l').tryAcquire())).toBeDefined();
  });

  test('a level that could not be entered for certain never costs one that was', async () => {
    world = new World();
    const [first, second] = [await world.client({ requestTimeout: '1s' }), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    for (const address of GATEWAYS) world.isolated.add(address);
    expect(await world.until(codeOf(held.acquire()))).not.toBe('ok');
    world.isolated.clear();
    // Until its cancel is over nothing more is asked in its name.
    expect(await world.until(codeOf(held.acquire()))).toBe('DEADLINE_EXCEEDED');
    await world.run(31_000);
    await world.until(held.acquire());
    await world.until(held.release());
    await world.run(5_000);
    expect([held.state, held.depth, await world.until(held.check())]).toEqual(['active', 1, true]);
    expect(await world.until(second.lock('l').tryAcquire())).toBeUndefined();
    await world.until(held.release());
    expect(await world.until(second.lock('l').tryAcquire())).toBeDefined();
  });

  test.each([
    { name: "its client's", lock: {}, leases: 1 },
    { name: 'one of its own', lock: { ttl: '10s' as const }, leases: 0 },
  ])('who gives up while a session is opened, $name, is told at once and leaves no lock', async ({ lock, leases }) => {
    world = new World();
    const client = await world.client();
    const controller = new AbortController();
    const acquired = codeOf(client.lock('l').acquire({ ...lock, signal: controller.signal }));
    await microtasks();
    controller.abort();
    expect(await acquired).toBe('CANCELED'); // without any time passing
    await world.run(1_000);
    expect(world.backend.sessions).toBe(leases);
    const other = await world.client();
    expect(await world.until(other.lock('l').tryAcquire())).toBeDefined();
  });

  test('any number of acquires, one after the other and together, leave nothing at their signal', async () => {
    world = new World();
    const warnings: string[] = [];
    const onWarning = (warning: Error): unknown => warnings.push(warning.name);
    process.on('warning', onWarning);
    const client = await world.client();
    const { signal } = new AbortController();
    for (let i = 0; i < 300; i++)
      await world.until((await world.until(client.lock('l').acquire({ signal }))).release());
    const held = await world.until(
      Promise.all(Array.from({ length: 100 }, (_, i) => client.lock(`l${i}`).acquire({ signal }))),
    );
    expect(getEventListeners(signal, 'abort').length).toBe(0);
    await world.until(Promise.all(held.map((each) => each.release())));
    await world.until(client.close());
    await world.run(61_000);
    process.off('warning', onWarning);
    expect([warnings, world.clock.pendingTimers, world.held]).toEqual([[], 0, 0]);
  });
});

describe('sessions of the SDK', () => {
  test.each(GATEWAYS)('a session outlives that gateway %s is cut off from the ranges', async (gateway) => {
    world = new World();
    const client = await world.client({ sessionTtl: '9s' });
    const held = await world.until(client.lock('l').acquire());
    world.isolated.add(gateway);
    await world.run(30_000);
    expect([held.state, world.backend.expired]).toEqual(['active', []]);
    expect(await world.until(codeOf(client.kv.put('k', 'v')))).toBe('ok');
  });

  test('requests leave a gateway that stands still, long before they or their connection would time out', async () => {
    world = new World();
    const client = await world.client({ requestTimeout: '30s' });
    await world.until(client.kv.put('k', 'v'));
    world.stall(true);
    const startMs = world.clock.monotonicMs();
    expect(await world.until(codeOf(client.kv.put('k', 'w')))).toBe('ok');
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(600);
    expect((await world.until(client.kv.get('k')))?.version).toBe(2);
  });

  test('requests leave a gateway that is cut off from the ranges', async () => {
    world = new World();
    const client = await world.client({ requestTimeout: '2s' });
    await world.until(client.kv.put('k', 'v'));
    for (const gateway of GATEWAYS) {
      world.isolated.clear();
      world.isolated.add(gateway);
      for (const _ of GATEWAYS) await world.until(codeOf(client.kv.put('k', 'v')));
      expect(await world.until(codeOf(client.kv.put('k', 'v')))).toBe('ok');
    }
  });

  test.each(GATEWAYS)(
    'goes over to the gateway of the leader, %s, and not to one that it cannot reach',
    async (leader) => {
      world = new World();
      world.leader = leader;
      const client = await world.client({ endpoints: GATEWAYS.map((address) => ` http://${address}/`) });
      await world.run(100);
      expect(world.links.at(-1)?.address).toBe(leader);
      await world.until(client.kv.put('k', 'v'));
      const other = GATEWAYS.find((address) => address !== leader) ?? '';
      world.down.add(leader);
      world.sever();
      await world.until(client.kv.put('k', 'v'));
      const startMs = world.clock.monotonicMs();
      for (let i = 0; i < 20; i++) await world.until(client.kv.put('k', String(i)));
      expect(world.clock.monotonicMs() - startMs).toBeLessThan(500);
      expect(world.links.at(-1)?.address).toBe(other);
    },
  );

  test('close ends a session that is still being opened, and in its time', async () => {
    world = new World();
    const client = await world.client();
    await world.until(client.kv.put('k', 'v'));
    const opening = codeOf(client.session({ ttl: '600s' }));
    await microtasks();
    await world.until(client.close());
    await world.run(100);
    expect([await opening, world.backend.sessions]).toEqual(['CANCELED', 0]);
  });

  test('close takes 3 s at most when the cluster is gone', async () => {
    world = new World();
    const client = await world.client();
    await world.until(client.kv.put('k', 'v'));
    world.stall(true);
    const acquiring = codeOf(client.lock('l').acquire());
    await world.run(10);
    const startMs = world.clock.monotonicMs();
    await world.until(client.close());
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(3_100);
    expect(await world.until(acquiring)).toBe('CANCELED');
    await world.run(61_000);
    expect([world.clock.pendingTimers, world.held]).toEqual([0, 0]);
  });
});
