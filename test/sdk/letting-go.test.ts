import { getEventListeners } from 'node:events';
import { ServiceError } from '@remora/base';
import type { HeldLock, HeldLocks, RemoraClient } from 'remora';
import { describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

/**
 * For how long nothing about locks is answered, while heartbeats are: longer than a release or a cancel is tried at
 * first.
 */
const AWAY_MS = 60_000;
const LATER_MS = 120_000;

describe('a lock with a delay whose session is closed by its client', () => {
  /** In the order in which they happen. */
  async function closed(hold: (client: RemoraClient) => Promise<HeldLock | HeldLocks>): Promise<readonly string[]> {
    const world = new World();
    const { backend } = world;
    const client = await world.client();
    const held = await world.until(hold(client));
    const happened: string[] = [];
    held.signal.addEventListener('abort', () => happened.push('aborted'));
    const apply = backend.command.bind(backend);
    backend.command = (command, options, done) => {
      if (command.type === 'lock' && command.command.type === 'release') happened.push('released');
      return apply(command, options, done);
    };
    await world.until(client.close());
    expect([held.signal.aborted, held.state]).toEqual([true, 'released']);
    return happened;
  }

  test('is lost to its holder before it is given back', async () => {
    expect(await closed((client) => client.lock('l').acquire({ lockDelay: '30s' }))).toEqual(['aborted', 'released']);
  });

  test('is so too when it is one of several', async () => {
    expect(await closed((client) => client.lockAll(['a', 'b']).acquire({ lockDelay: '30s' }))).toEqual([
      'aborted',
      'released',
      'released',
    ]);
  });

  test('is lost also while its release waits for the answer to something else', async () => {
    const world = new World();
    const client = await world.client();
    const held = await world.until(client.lock('l').acquire({ lockDelay: '30s' }));
    let seen: unknown;
    held.signal.addEventListener('abort', () => {
      seen = [held.state, held.remainingMs];
    });
    const said = codeOf(held.setData('x'));
    await world.until(client.close());
    expect([seen, held.state, await said]).toEqual([['lost', 0], 'released', 'ok']);
  });

  test('is so for who looks at its signal for the first time afterwards', async () => {
    const world = new World();
    const client = await world.client();
    const held = await world.until(client.lock('l').acquire({ lockDelay: '30s' }));
    await world.until(client.close());
    expect(held.signal.aborted).toBe(true);
  });
});

describe('where nothing about locks is answered for longer than that is tried at first, while the session lives on', () => {
  test('a release arrives when it can, and the next one has the lock', async () => {
    const world = new World();
    const [client, other] = [await world.client({ requestTimeout: '5s' }), await world.client()];
    const held = await world.until(client.lock('a').acquire());
    for (const gateway of GATEWAYS) world.overLimit.add(gateway);
    expect(await world.until(codeOf(held.release()))).not.toBe('ok');
    await world.run(AWAY_MS);
    world.overLimit.clear();
    await world.run(LATER_MS);
    expect((await world.until(other.lock('a').acquire({ wait: '30s' }))).state).toBe('active');
  });

  test('so does a cancel, and nobody is granted the lock for whom nobody waits', async () => {
    const world = new World();
    const [client, other] = [await world.client({ requestTimeout: '5s' }), await world.client()];
    const first = await world.until(other.lock('a').acquire());
    const abort = new AbortController();
    const waiting = codeOf(client.lock('a').acquire({ signal: abort.signal }));
    await world.run(100);
    for (const gateway of GATEWAYS) world.overLimit.add(gateway);
    abort.abort();
    expect(await world.until(waiting)).toBe('CANCELED');
    await world.run(AWAY_MS);
    world.overLimit.clear();
    await world.run(LATER_MS);
    await world.until(first.release());
    expect((await world.until(other.lock('a').acquire({ wait: '30s' }))).state).toBe('active');
  });

  test.each<{ readonly name: string; readonly letGo: (client: RemoraClient, world: World) => Promise<string> }>([
    {
      name: 'a release of a lock with a TTL of its own',
      letGo: async (client, world) => {
        const held = await world.until(client.lock('a').acquire({ ttl: '1h' }));
        for (const gateway of GATEWAYS) world.overLimit.add(gateway);
        return codeOf(held.release());
      },
    },
    {
      name: 'the end of a session with a TTL of its own',
      letGo: async (client, world) => {
        const session = await world.until(client.session({ ttl: '1h' }));
        await world.until(session.lock('a').acquire());
        for (const gateway of GATEWAYS) world.overLimit.add(gateway);
        return codeOf(session.close());
      },
    },
    {
      name: 'the end of an acquire that asked for a TTL of its own, and was given up',
      letGo: async (client, world) => {
        const abort = new AbortController();
        const acquiring = client.lock('a').acquire({ ttl: '1h', signal: abort.signal });
        const { backend } = world;
        const apply = backend.command.bind(backend);
        // It is granted, and nobody hears of that.
        backend.command = (command, options, done) => {
          if (command.type !== 'lock') return apply(command, options, done);
          for (const gateway of GATEWAYS) world.overLimit.add(gateway);
          backend.command = apply;
          return apply(command, options, () => {});
        };
        await world.run(100);
        abort.abort();
        return codeOf(acquiring);
      },
    },
  ])('$name arrives when it can, long before the TTL is over', async ({ letGo }) => {
    const world = new World();
    const [client, other] = [await world.client({ requestTimeout: '5s' }), await world.client()];
    expect(await world.until(letGo(client, world))).not.toBe('ok');
    await world.run(AWAY_MS);
    expect(await world.until(other.locks.show('a'))).toBeDefined();
    world.overLimit.clear();
    await world.run(LATER_MS);
    expect((await world.until(other.lock('a').acquire({ wait: '30s' }))).state).toBe('active');
  });

  test('nothing is asked for any more once the client is closed', async () => {
    const world = new World();
    const client = await world.client({ requestTimeout: '5s' });
    const held = await world.until(client.lock('a').acquire());
    for (const gateway of GATEWAYS) world.overLimit.add(gateway);
    await world.until(codeOf(held.release()));
    await world.run(AWAY_MS);
    await world.until(codeOf(client.close()));
    const { refused } = world;
    await world.run(LATER_MS);
    expect([refused > 0, world.refused]).toEqual([true, refused]);
  });
});

test('a release whose first answer is lost costs nobody the lock-delay, where the lock has a lease of its own', async () => {
  const world = new World();
  const { backend } = world;
  const [client, other] = [await world.client({ requestTimeout: '2s', retry: { attempts: 1 } }), await world.client()];
  const held = await world.until(client.lock('a').acquire({ ttl: '10m', lockDelay: '60s' }));
  const apply = backend.command.bind(backend);
  let isLost = false;
  backend.command = (command, options, done) => {
    if (isLost || command.type !== 'lock' || command.command.type !== 'release') return apply(command, options, done);
    isLost = true;
    done(new ServiceError('UNKNOWN_OUTCOME', 'it was lost on the way'), undefined);
    return () => {};
  };
  expect(await world.until(codeOf(held.release()))).toBe('UNKNOWN_OUTCOME');
  await world.run(5_000);
  expect((await world.until(other.lock('a').tryAcquire()))?.state).toBe('active');
  expect(backend.sessions).toBe(1);
});

describe('who lets go of a lock whose upgrade waits', () => {
  test('does not wait for it: the upgrade is given up', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(client.rwLock('l').read());
    const reader = await world.until(other.rwLock('l').read());
    const upgrade = codeOf(held.upgrade());
    await world.run(50);
    expect(await world.until(codeOf(held.release()))).toBe('ok');
    expect(await world.until(upgrade)).toBe('LOCK_CANCELED');
    expect([held.state, reader.state]).toEqual(['released', 'active']);
    expect((await world.until(other.rwLock('l').tryRead()))?.state).toBe('active');
  });

  test('is told apart from who aborts the upgrade, and many upgrades listen to one signal once', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const { signal, abort } = ((stop) => ({ signal: stop.signal, abort: () => stop.abort() }))(new AbortController());
    const upgrades: Promise<string>[] = [];
    for (const name of ['a', 'b', 'c']) {
      const held = await world.until(client.rwLock(name).read());
      await world.until(other.rwLock(name).read());
      upgrades.push(codeOf(held.upgrade({ signal })));
    }
    await world.run(50);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    abort();
    expect(await world.until(Promise.all(upgrades))).toEqual(['CANCELED', 'CANCELED', 'CANCELED']);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('as its work throws, hears of that at once', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    await world.until(other.rwLock('l').read());
    const work = client.rwLock('l').runRead(async (held) => {
      held.upgrade().catch(() => {});
      throw new Error('of the work');
    });
    await expect(world.until(work)).rejects.toThrow('of the work');
  });

  test('at all its levels at once does not wait for it either', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(client.rwLock('l').read());
    await world.until(other.rwLock('l').read());
    await world.until(held.acquire());
    const upgrade = codeOf(held.upgrade());
    await world.run(50);
    const released = [codeOf(held.release()), codeOf(held.release())];
    expect(await world.until(Promise.all(released))).toEqual(['ok', 'ok']);
    expect([await world.until(upgrade), held.state]).toEqual(['LOCK_CANCELED', 'released']);
  });

  test('leaves it alone while it stays in the lock at an outer level', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(client.rwLock('l').read());
    const reader = await world.until(other.rwLock('l').read());
    await world.until(held.acquire());
    const upgrade = codeOf(held.upgrade());
    await world.run(50);
    const released = codeOf(held.release());
    await world.run(50);
    await world.until(reader.release());
    expect([await world.until(upgrade), await world.until(released)]).toEqual(['ok', 'ok']);
    expect([held.mode, held.depth]).toEqual(['exclusive', 1]);
  });
});

test('a lease of a lock that is lost here is ended before its client is closed, who waits for that', async () => {
  const world = new World();
  const client = await world.client();
  const held = await world.until(client.lock('l').acquire({ ttl: '5m', maxHold: '1s' }));
  await world.run(1_000);
  expect(held.state).toBe('lost');
  const released = held.release();
  await world.until(client.close());
  await world.until(released);
  expect(world.backend.sessions).toBe(0);
});
