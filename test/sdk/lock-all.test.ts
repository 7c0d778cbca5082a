import { utf8 } from '@remora/base';
import type { LockChoice } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { planLocks } from '../../packages/client/src/lock/lock-choice.ts';
import { codeOf, World } from '../support/sdk-world.ts';

describe('the plan of several locks', () => {
  const rows: readonly { name: string; choices: readonly LockChoice[]; expect: readonly string[]; places: number[] }[] =
    [
      {
        name: 'goes by the bytes of names',
        choices: ['ü', 'b', 'a\0', 'a'],
        expect: ['a', 'a\0', 'b', 'ü'],
        places: [3, 2, 1, 0],
      },
      {
        name: 'takes text and bytes for the same',
        choices: ['b', utf8('a'), utf8('b')],
        expect: ['a', 'b'],
        places: [1, 0, 1],
      },
      {
        name: 'goes by the namespace first',
        choices: [{ lock: 'a', namespace: 'z' }, 'b', { lock: 'a', namespace: 'A' }],
        expect: ['A:a', 'b', 'z:a'],
        places: [2, 1, 0],
      },
      {
        name: 'has a lock alone if one of the choices wants that, in any order',
        choices: [{ lock: 'a', shared: true }, 'a', 'b', { lock: 'b', shared: true }],
        expect: ['a', 'b'],
        places: [0, 0, 1, 1],
      },
      {
        name: 'shares what all choices share',
        choices: [
          { lock: 'a', shared: true },
          { lock: 'a', shared: true },
        ],
        expect: ['a shared'],
        places: [0, 0],
      },
      {
        name: 'adds up permits',
        choices: [
          { semaphore: 's', capacity: 5, permits: 2 },
          { semaphore: 's', capacity: 5 },
        ],
        expect: ['s 3 of 5'],
        places: [0, 0],
      },
    ];
  test.each(rows)('$name', ({ choices, expect: expected, places }) => {
    const plan = planLocks(choices);
    const texts = plan.wanted.map(({ id, as }) => {
      const name = `${id.namespace === 'default' ? '' : `${id.namespace}:`}${Buffer.from(id.name).toString()}`;
      if (as?.type === 'permits') return `${name} ${as.permits} of ${as.capacity}`;
      return as === undefined ? name : `${name} ${as.type}`;
    });
    expect([texts, plan.places]).toEqual([expected, places]);
  });

  const refused: readonly { name: string; choices: readonly LockChoice[] }[] = [
    { name: 'no lock', choices: [] },
    { name: 'too many', choices: Array.from({ length: 1_001 }, (_, i) => `l${i}`) },
    { name: 'a lock and a semaphore of one name', choices: ['a', { semaphore: 'a', capacity: 2 }] },
    {
      name: 'two capacities',
      choices: [
        { semaphore: 'a', capacity: 3 },
        { semaphore: 'a', capacity: 2 },
      ],
    },
  ];
  test.each(refused)('$name is refused', ({ choices }) => {
    expect(() => planLocks(choices)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('several locks', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  test('are held together and released together; handles are in the order of asking', async () => {
    const client = await world.client();
    const all = await world.until(client.lockAll(['b', client.lock('a'), 'b']).acquire());
    expect(all.locks.map(({ id }) => Buffer.from(id.name).toString())).toEqual(['b', 'a', 'b']);
    expect(all.versions).toEqual(all.locks.map(({ version }) => version));
    expect([all.state, all.signal.aborted, await world.until(all.check())]).toEqual(['active', false, true]);
    expect(all.remainingMs).toBeGreaterThan(0);
    expect(await world.until(client.lockAll(['c', 'a']).tryAcquire())).toBeUndefined();
    await world.until(all.release());
    expect([all.state, await world.until(client.locks.list().toArray())]).toEqual(['released', []]);
    expect(() => all.throwIfLost()).toThrow(expect.objectContaining({ code: 'LOCK_NOT_HELD' }));
  });

  test('that are not all granted in time leave nothing, and say which one was missing', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await world.until(other.lock('b').acquire());
    const startMs = world.clock.monotonicMs();
    const missing = client.lockAll(['a', 'b', 'c']).acquire({ wait: '1s' });
    await expect(world.until(missing)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', details: { lock: 'b' } });
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(1_200);
    expect(await world.until(codeOf(client.lockAll(['a', 'b']).acquire({ wait: 0 })))).toBe('LOCK_BUSY');
    const { signal, abort } = abortable();
    const aborted = client.lockAll(['a', 'b']).acquire({ signal });
    await world.run(20);
    abort();
    expect(await world.until(codeOf(aborted))).toBe('CANCELED');
    await world.run(50);
    const locks = await world.until(client.locks.list().toArray());
    expect(locks.map(({ lock, waiterCount }) => [Buffer.from(lock.name).toString(), waiterCount])).toEqual([['b', 0]]);
  });

  test('share one wait', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(Promise.all(['a', 'b'].map((name) => other.lock(name).acquire())));
    const startMs = world.clock.monotonicMs();
    const waiting = codeOf(client.lockAll(['a', 'b']).acquire({ wait: '1s' }));
    await world.run(700);
    await world.until(held[0]?.release() ?? Promise.resolve());
    expect(await world.until(waiting)).toBe('LOCK_TIMEOUT');
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(1_200);
  });

  test('are not held if one was taken away while others were waited for', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const held = await world.until(other.lock('b').acquire());
    const waiting = codeOf(client.lockAll(['a', 'b']).acquire());
    await world.run(50);
    await world.until(other.locks.forceRelease('a'));
    await world.until(held.release());
    expect(await world.until(waiting)).toBe('LOCK_NOT_HELD');
    await world.run(50);
    expect(await world.until(client.locks.list().toArray())).toEqual([]);
  });

  test('have one signal, which aborts when any of them is lost; the others are released all the same', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const all = await world.until(client.lockAll(['a', { lock: 'b', shared: true }]).acquire());
    const { signal } = all;
    await world.until(other.locks.forceRelease('b'));
    await world.run(500);
    expect([signal.aborted, all.state, await world.until(all.check())]).toEqual([true, 'lost', false]);
    expect(signal.reason).toMatchObject({ code: 'LOCK_NOT_HELD' });
    await world.until(all[Symbol.asyncDispose]());
    expect(await world.until(client.locks.list().toArray())).toEqual([]);
  });

  test('are not told as held when their session has ended here before the answer came', async () => {
    const client = await world.client();
    const session = await world.until(client.session());
    const all = await world.until(session.lockAll(['a', 'b']).acquire());
    const checked = all.check();
    const closed = session.close();
    expect([await world.until(checked), all.state]).toEqual([false, 'lost']);
    await world.until(closed);
  });

  test("run work, and belong to a session of one's own if wanted", async () => {
    const client = await world.client();
    const session = await world.until(client.session());
    const choices: readonly LockChoice[] = ['a', { semaphore: 's', capacity: 2, permits: 2 }];
    const done = await world.until(session.lockAll(choices).run({ wait: '1s' }, ({ versions }) => versions.length));
    expect(done).toBe(2);
    expect(await world.until(client.locks.list().toArray())).toEqual([]);
    const all = await world.until(session.lockAll(choices).acquire());
    await world.until(session.close());
    expect([all.state, all.signal.aborted]).toEqual(['lost', true]);
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

test('a set whose time was over before the next lock was asked for tells which that was', async () => {
  const world = new World();
  const client = await world.client();
  await world.until(client.lock('other').acquire()); // so that the wait is not over before there is a session
  const acquire = client.lockAll(['a', 'b']).acquire({ wait: 1 });
  await expect(world.until(acquire)).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
    details: { lock: expect.any(String) },
  });
});
