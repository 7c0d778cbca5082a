import { TTL_NEVER_MS } from '@remora/lock';
import type { AcquireOptions, HeldLock, RemoraClient } from 'remora';
import { describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

const FAST = { heartbeat: 200, serverMisses: 5, holderMisses: 3 } as const;

/** Nothing reaches the cluster any more. */
function cutOff(world: World): void {
  for (const address of GATEWAYS) world.isolated.add(address);
}

async function holding(world: World, options: AcquireOptions): Promise<{ client: RemoraClient; held: HeldLock }> {
  const client = await world.client({ sessionTtl: '10s' });
  return { client, held: await world.until(client.lock('l').acquire(options)) };
}

/** When the signal aborts, in the time of the world. */
function lostAt(world: World, held: HeldLock): { ms: number } {
  const lost = { ms: Number.POSITIVE_INFINITY };
  held.signal.addEventListener('abort', () => {
    lost.ms = world.clock.monotonicMs();
  });
  return lost;
}

describe('a lock with a ttl of its own', () => {
  test('outlives its holder for that long, whatever the ttl of the session', async () => {
    const world = new World();
    const { client, held } = await holding(world, { ttl: '1s' });
    const other = await world.until(client.lock('other').acquire());
    await world.run(5_000);
    expect(await world.until(held.check())).toBe(true);
    cutOff(world);
    await world.run(1_500);
    expect([held.state, other.state, world.backend.expired.length]).toEqual(['lost', 'active', 1]);
  });

  test('leaves nothing behind: when it is released, taken, not granted, or given up', async () => {
    const world = new World();
    const { client, held } = await holding(world, { ttl: '1s' });
    expect(await world.until(client.lock('l').tryAcquire({ ttl: '1s' }))).toBeUndefined();
    expect(await world.until(codeOf(client.lock('l').acquire({ ttl: '1s', wait: 50 })))).toBe('LOCK_TIMEOUT');
    await world.run(100);
    expect(world.backend.sessions).toBe(1);
    await world.until(client.locks.forceRelease('l'));
    expect(await world.until(held.check())).toBe(false);
    await world.run(100);
    expect(world.backend.sessions).toBe(0);
    const again = await world.until(client.lock('l').acquire({ ttl: '1s' }));
    await world.until(again.release());
    await world.run(100);
    expect([world.backend.sessions, world.backend.expired.length]).toEqual([0, 0]);
    await world.until(client.close());
    expect(world.clock.pendingTimers).toBe(0);
  });

  test('and a lock-delay keeps nobody off when it was granted and given up before its handle came', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const giveUp = new AbortController();
    world.backend.onApplied = ({ type }) => {
      if (type === 'leaseChange') giveUp.abort();
    };
    const acquiring = client.lock('l').acquire({ ttl: 'never', lockDelay: '60s', signal: giveUp.signal });
    expect(await world.until(codeOf(acquiring))).toBe('CANCELED');
    await world.run(100);
    expect(await world.until(other.lock('l').tryAcquire())).toBeDefined();
    expect(world.backend.sessions).toBe(1);
  });

  test('and a lock-delay keeps nobody off when it is given back as nobody knows how it is held', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(client.rwLock('l').write({ ttl: '10m', lockDelay: '60s' }));
    for (const address of GATEWAYS) world.overLimit.add(address);
    expect(await world.until(codeOf(held.downgrade()))).toBe('RESOURCE_EXHAUSTED');
    world.overLimit.clear();
    await world.run(5_000);
    expect([held.state, await world.until(other.lock('l').tryAcquire())]).toEqual(['lost', expect.anything()]);
    expect(world.backend.sessions).toBe(1);
  });

  test('is not acquired in a session that was closed, also meanwhile', async () => {
    const world = new World();
    const client = await world.client();
    const session = await world.until(client.session());
    const acquiring = codeOf(session.lock('l').acquire({ ttl: '1s' }));
    await world.until(session.close());
    expect(await world.until(acquiring)).toBe('CANCELED');
    expect(await world.until(codeOf(session.election('l').campaign()))).toBe('CANCELED');
    await world.run(100);
    expect(world.backend.sessions).toBe(0);
  });

  test('ends with the session that it was acquired in when that is closed, and not when that is lost', async () => {
    const world = new World();
    const client = await world.client();
    const [closed, gone] = [await world.until(client.session()), await world.until(client.session({ ttl: '1s' }))];
    const first = await world.until(closed.lock('a').acquire({ ttl: '5s' }));
    const second = await world.until(gone.lock('b').acquire({ ttl: '60s' }));
    await world.until(closed.close());
    cutOff(world);
    await world.run(1_500);
    expect([first.state, gone.state, second.state]).toEqual(['lost', 'lost', 'active']);
  });
});

describe('a leadership that is resumed', () => {
  test('ends with the session that it was resumed in, and is not taken up in one that was closed', async () => {
    const world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const led = await world.until(first.election('l').campaign());
    const [open, closed] = [await world.until(second.session()), await world.until(second.session())];
    await world.until(closed.close());
    expect(await world.until(codeOf(closed.election('l').resume(led.handle)))).toBe('CANCELED');
    expect(await world.until(led.check())).toBe(true);
    const resumed = await world.until(open.election('l').resume(led.handle));
    expect([resumed.state, resumed.version]).toEqual(['active', led.version]);
    await world.until(open.close());
    expect([resumed.state, await world.until(second.election('l').leader())]).toEqual(['lost', undefined]);
  });

  test('is kept alive by nobody when what was asked for is refused', async () => {
    const world = new World();
    const [one = '', other = ''] = GATEWAYS;
    const first = await world.client({ endpoints: [one] });
    const second = await world.client({ endpoints: [other] });
    const { handle } = await world.until(first.election('l').campaign());
    world.isolated.add(one);
    const resumed = second.election('l').resume(handle, { wait: -1 });
    expect(await world.until(codeOf(resumed))).toBe('INVALID_ARGUMENT');
    await world.run(20_000);
    expect(await world.until(second.election('l').leader())).toBeUndefined();
  });
});

describe('a lock that is not renewed', () => {
  test('counts down, from its grant, and is lost before anybody else can have it', async () => {
    const world = new World();
    const client = await world.client();
    const first = await world.until(client.lock('l').acquire());
    const waiting = client.lock('l').acquire({ ttl: '3s', renew: false });
    await world.run(2_500); // It is renewed while it waits.
    await world.until(first.release());
    const held = await world.until(waiting);
    expect(held.remainingMs).toBeGreaterThan(2_500);
    const lost = lostAt(world, held);
    await world.run(2_000);
    expect([held.state, held.remainingMs < 700]).toEqual(['active', true]);
    await world.run(1_500);
    expect(held.state).toBe('lost');
    expect(lost.ms).toBeLessThan(world.backend.expired[0]?.atMs ?? 0);
  });

  test('is extended by hand, also to another ttl', async () => {
    const world = new World();
    const { held } = await holding(world, { ttl: '1s', renew: false });
    for (let i = 0; i < 5; i++) {
      await world.run(600);
      await world.until(held.extend());
    }
    await world.until(held.extend('10s'));
    await world.run(7_000);
    expect([held.state, world.backend.ttlsMs()]).toEqual(['active', [10_000]]);
    await world.run(3_500);
    expect([held.state, world.backend.expired.length]).toEqual(['lost', 1]);
    expect(await world.until(codeOf(held.extend()))).toBe('SESSION_EXPIRED');
  });
});

describe('a lock that never expires', () => {
  test('stays when its holder is gone, until it is released by force', async () => {
    const world = new World();
    const { held } = await holding(world, { ttl: 'never' });
    expect([held.remainingMs, world.backend.ttlsMs()]).toEqual([Number.POSITIVE_INFINITY, [TTL_NEVER_MS]]);
    cutOff(world);
    await world.run(120_000);
    expect([held.state, world.backend.expired]).toEqual(['active', []]);
    world.isolated.clear();
    const other = await world.client();
    expect(await world.until(other.lock('l').tryAcquire())).toBeUndefined();
    await world.until(other.locks.forceRelease('l'));
    expect(await world.until(other.lock('l').tryAcquire())).toBeDefined();
  });

  test('is released in the background when an outage was longer than anybody waits', async () => {
    const world = new World();
    const { client, held } = await holding(world, { ttl: 'never' });
    cutOff(world);
    expect(await world.until(codeOf(held.release()))).toMatch(/DEADLINE_EXCEEDED|UNKNOWN_OUTCOME/);
    await world.run(120_000);
    world.isolated.clear();
    await world.run(31_000);
    expect([world.backend.sessions, world.held]).toEqual([0, 0]);
    await world.until(client.close());
    expect(world.clock.pendingTimers).toBe(0);
  });

  test.each(['leaseChange', 'leaseKeepAlive'] as const)(
    'is released in the background when the acquire failed before its %s was answered',
    async (last) => {
      const world = new World();
      world.backend.onApplied = ({ type }) => {
        if (type === (last === 'leaseChange' ? 'leaseChange' : 'lock')) cutOff(world);
      };
      const client = await world.client({ requestTimeout: '2s', sessionTtl: '60s' });
      const code = await world.until(codeOf(client.lock('l').acquire({ ttl: 'never' })));
      expect(code).toMatch(/DEADLINE_EXCEEDED|UNKNOWN_OUTCOME/);
      await world.run(50_000);
      expect(world.backend.sessions).toBe(1);
      world.isolated.clear();
      world.backend.onApplied = () => {};
      await world.run(31_000);
      expect([world.backend.sessions, world.backend.expired]).toEqual([0, []]);
    },
  );

  test('is released by closing the client, which asks once more, and no further when that fails', async () => {
    const world = new World();
    const [{ client, held }, other] = [await holding(world, { ttl: 'never' }), await world.client()];
    const second = await world.until(other.lock('m').acquire({ ttl: 'never' }));
    cutOff(world);
    await Promise.all([held, second].map((lock) => world.until(codeOf(lock.release()))));
    await world.run(60_000);
    await world.until(other.close());
    world.isolated.clear();
    await world.until(client.close());
    const asked = world.backend.seen.length;
    await world.run(60_000);
    expect([world.backend.ttlsMs(), world.backend.seen.length]).toEqual([[TTL_NEVER_MS], asked]);
  });

  test('is a waiter like any until it is granted: one that dies is gone', async () => {
    const world = new World();
    const { client } = await holding(world, {});
    const dying = await world.client({ sessionTtl: '1s' });
    const waiting = codeOf(dying.lock('l').acquire({ ttl: 'never' }));
    await world.run(500);
    expect((await world.until(client.locks.show('l')))?.waiterCount).toBe(1);
    cutOff(world);
    await world.run(2_000);
    expect(await waiting).toBe('SESSION_EXPIRED');
    expect(world.backend.expired).not.toEqual([]);
  });

  test('is freed by its condition when that says when', async () => {
    const world = new World();
    const { held } = await holding(world, { ttl: 'never', condition: FAST });
    const lost = lostAt(world, held);
    const cutMs = world.clock.monotonicMs();
    cutOff(world);
    await world.run(2_000);
    const [expired] = world.backend.expired;
    // Three unanswered heartbeats end it here, five missed ones there.
    expect(lost.ms - cutMs).toBeLessThanOrEqual(600);
    expect((expired?.atMs ?? 0) - cutMs).toBeGreaterThan(750);
  });
});

describe('a condition', () => {
  test('is changed while the lock is held, to longer and to shorter times', async () => {
    const world = new World();
    const { held } = await holding(world, { condition: FAST });
    await world.until(held.setCondition({ heartbeat: '2s', serverMisses: 10 }));
    expect([world.backend.ttlsMs(), held.remainingMs > 15_000]).toEqual([[20_000], true]);
    await world.run(1_500);
    await world.until(held.setCondition(FAST));
    expect([world.backend.ttlsMs(), held.remainingMs > 500, held.remainingMs <= 600]).toEqual([[1_000], true, true]);
    await world.run(5_000);
    expect([held.state, world.backend.expired]).toEqual(['active', []]);
  });

  test('that is made longer counts from the first heartbeat that was answered with it (S5)', async () => {
    const world = new World();
    const { held } = await holding(world, { ttl: '1s' });
    world.backend.onApplied = ({ type }) => {
      if (type === 'leaseChange') cutOff(world); // It is answered, and nothing after it.
    };
    const lost = lostAt(world, held);
    const extending = codeOf(held.extend('60s'));
    await world.run(20_000);
    expect([await extending, world.backend.expired.length]).not.toContain('ok');
    expect(lost.ms).toBeLessThan(world.backend.expired[0]?.atMs ?? 0);
  });

  test('that is made shorter counts from then on, though nobody knows whether the cluster has heard of it (S5)', async () => {
    const world = new World();
    const { held } = await holding(world, { ttl: '60s' });
    await world.run(1_000);
    world.backend.onApplied = ({ type }) => {
      if (type !== 'leaseChange') return;
      cutOff(world);
      world.sever(); // The answer is lost, and all that follows.
    };
    const lost = lostAt(world, held);
    const changing = codeOf(held.setCondition(FAST));
    await world.run(50);
    world.backend.changeLeader();
    await world.run(30_000);
    expect(await changing).not.toBe('ok');
    expect(lost.ms).toBeLessThan(world.backend.expired[0]?.atMs ?? 0);
  });

  test.each([
    { what: 'leaves no margin', options: { condition: { heartbeat: '1s', serverMisses: 3, holderMisses: 3 } } },
    { what: 'is another ttl', options: { ttl: '2s', condition: { heartbeat: '1s', serverMisses: 3 } } },
    { what: 'has no heartbeats', options: { renew: false, condition: { heartbeat: '1s', serverMisses: 3 } } },
    { what: 'has no ttl to last for', options: { renew: false } },
    { what: 'lasts for nothing', options: { ttl: 0 } },
    { what: 'may be held for no time', options: { maxHold: 0 } },
    { what: 'is freed by nobody in the end', options: { ttl: 'never', maxHold: '1s' } },
  ] as const)('that $what is refused, and nothing is sent', async ({ options }) => {
    const world = new World();
    const client = await world.client();
    expect(await world.until(codeOf(client.lock('l').acquire(options)))).toBe('INVALID_ARGUMENT');
    expect(world.backend.seen).toEqual([]);
  });

  test('and a ttl are of locks that were acquired with one', async () => {
    const world = new World();
    const { held } = await holding(world, {});
    expect(await codeOf(held.setCondition(FAST))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(held.extend('5s'))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(held.orphan())).toBe('INVALID_ARGUMENT');
    await world.until(held.extend());
    expect(held.state).toBe('active');
  });
});

test('what each holder has agreed on, and how long it would have the lock, is told of a lock', async () => {
  const world = new World();
  const { client, held } = await holding(world, { condition: FAST });
  await world.run(300);
  const details = await world.until(client.locks.details('l'));
  const condition = { heartbeatMs: 200, serverMisses: 5, holderMisses: 3 };
  expect(details?.holders).toMatchObject([{ version: held.version, terms: { ttlMs: 1_000, condition } }]);
  expect(details?.holders[0]?.terms?.remainingMs).toBeLessThan(1_000);
  await world.until(held.release());
  const keeper = await world.until(client.lock('l').acquire({ lockDelay: '1m', ttl: '1s' }));
  // Sessions that go on, before and after it by their numbers: nobody takes their terms for its own.
  for (const name of ['a', 'b', 'c', 'd']) await world.until(client.lock(name).acquire({ ttl: '1h' }));
  await keeper.orphan();
  await world.run(2_000);
  const [delayed] = (await world.until(client.locks.details('l')))?.holders ?? [];
  expect([delayed?.delayed, delayed?.terms]).toEqual([true, undefined]);
  expect(await world.until(client.locks.details('free'))).toBeUndefined();
});

test('a lock is held no longer than maxHold, though it is renewed, and is free at once when it is let go then', async () => {
  const world = new World();
  const { client, held } = await holding(world, { ttl: '10s', maxHold: '25s' });
  const startMs = world.clock.monotonicMs();
  const lost = lostAt(world, held);
  await world.run(26_000);
  expect(lost.ms - startMs).toBeCloseTo(25_000);
  expect(await world.until(client.lock('l').tryAcquire())).toBeUndefined();
  await world.until(held.release());
  await world.run(50);
  expect([(await world.until(client.lock('l').tryAcquire()))?.state, world.backend.expired]).toEqual(['active', []]);
});

test('an orphaned lock is nobody else’s until its ttl is over, though its client is closed', async () => {
  const world = new World();
  const { client, held } = await holding(world, { ttl: '10s' });
  await held.orphan();
  expect([held.state, await codeOf(held.check())]).toEqual(['released', 'ok']);
  await world.until(client.close());
  const other = await world.client();
  await world.run(6_000);
  expect(await world.until(other.lock('l').tryAcquire())).toBeUndefined();
  const next = await world.until(other.lock('l').acquire({ wait: '10s' }));
  expect(next.version).toBeGreaterThan(held.version);
  expect(world.backend.expired).toHaveLength(1);
});

test('an orphaned session leaves all that it holds', async () => {
  const world = new World();
  const client = await world.client();
  const session = await world.until(client.session({ ttl: '5s' }));
  await world.until(session.lock('l').acquire());
  await session.orphan();
  expect([session.state, session.signal.aborted]).toEqual(['closed', true]);
  expect(await world.until(client.lock('l').tryAcquire())).toBeUndefined();
  await world.run(5_200);
  expect(await world.until(client.lock('l').tryAcquire())).toBeDefined();
});
