import type { AcquireOptions, HeldLock } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});

const rows = [
  { how: 'a lock', mode: 'exclusive' },
  { how: 'a lock that is read', mode: 'shared' },
  { how: 'a lock that is written', mode: 'exclusive' },
  { how: 'permits', mode: 'permits' },
] as const;

/** Runs work in the way that a row names. */
function runAs(how: (typeof rows)[number]['how'], client: Awaited<ReturnType<World['client']>>) {
  return <Result>(work: (held: HeldLock) => Result | Promise<Result>): Promise<Result> => {
    switch (how) {
      case 'a lock':
        return client.lock('l').run(work);
      case 'a lock that is read':
        return client.rwLock('l').runRead({ wait: 0 }, work);
      case 'a lock that is written':
        return client.rwLock('l').runWrite(work);
      case 'permits':
        return client.semaphore('l', { permits: 3 }).run({ permits: 2 }, work);
    }
  };
}

describe.each(rows)('work under $how', ({ how, mode }) => {
  test('runs while it is held, and gives its value when it is released', async () => {
    const client = await world.client();
    const run = runAs(how, client);
    const value = await world.until(
      run(async ({ version, signal, mode: asHeld }) => {
        const state = await client.locks.show('l');
        return [asHeld, signal.aborted, state?.holders.map((holder) => holder.version)[0] === version];
      }),
    );
    expect(value).toEqual([mode, false, true]);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('that throws, or rejects, leaves its own error and no lock', async () => {
    const client = await world.client();
    const [thrown, rejected] = [new Error('thrown'), new Error('rejected')];
    const fails = runAs(
      how,
      client,
    )(() => {
      throw thrown;
    });
    await expect(world.until(fails)).rejects.toBe(thrown);
    await expect(world.until(runAs(how, client)(() => Promise.reject(rejected)))).rejects.toBe(rejected);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });
});

describe.each(rows.slice(0, 3))('a handle of $how', ({ how }) => {
  const acquire = (client: Awaited<ReturnType<World['client']>>, options: AcquireOptions): Promise<HeldLock> => {
    if (how === 'a lock') return client.lock('l').acquire(options);
    return how === 'a lock that is read' ? client.rwLock('l').read(options) : client.rwLock('l').write(options);
  };

  test.each([
    { depthMax: 1, levels: 1 },
    { depthMax: 3, levels: 3 },
    { depthMax: 2, token: 'mine', levels: 2 },
  ])('enters no deeper than its acquire allowed: $levels', async ({ levels, ...options }) => {
    const client = await world.client();
    const held = await world.until(acquire(client, options));
    for (let level = 1; level < levels; level++) await world.until(held.acquire());
    expect(await world.until(codeOf(held.acquire()))).toBe('LOCK_DEPTH_EXCEEDED');
    expect([held.depth, held.state]).toEqual([levels, 'active']);
    await world.until(held.acquire({ depthMax: levels + 1 })); // for this entry, it says otherwise
    expect(held.depth).toBe(levels + 1);
  });

  test('enters again without a limit of its own when its acquire named none', async () => {
    const client = await world.client();
    const held = await world.until(acquire(client, {}));
    for (let level = 1; level < 5; level++) await world.until(held.acquire());
    expect(held.depth).toBe(5);
  });
});

describe('work under a lock that cannot be released', () => {
  const cutOff = (): void => {
    for (const address of GATEWAYS) world.isolated.add(address);
  };

  test('keeps its own error, which says what came of the release', async () => {
    const client = await world.client({ requestTimeout: '500ms' });
    const own = new Error('own');
    const failing = client.lock('l').run(() => {
      cutOff();
      throw own;
    });
    await expect(world.until(failing)).rejects.toBe(own);
    expect(own).toMatchObject({ suppressed: { code: 'DEADLINE_EXCEEDED' } });
    expect(Object.keys(own)).toEqual([]);
  });

  test('keeps what cannot carry another error', async () => {
    const client = await world.client({ requestTimeout: '500ms' });
    const frozen = Object.freeze(new Error('frozen'));
    const failing = client.lock('l').run(() => {
      cutOff();
      throw frozen;
    });
    await expect(world.until(failing)).rejects.toBe(frozen);
  });

  test('keeps what tells already that something else was suppressed, as it is', async () => {
    const client = await world.client({ requestTimeout: '500ms' });
    const first = new Error('first');
    for (const fixed of [true, false]) {
      world.isolated.clear();
      const own = new Error('own');
      Object.defineProperty(own, 'suppressed', { value: first, configurable: !fixed, writable: !fixed });
      const failing = client.lock(`suppressed-${fixed}`).run(() => {
        cutOff();
        throw own;
      });
      await expect(world.until(failing)).rejects.toBe(own);
      expect(own).toMatchObject({ suppressed: first });
    }
  });

  test('keeps its value', async () => {
    const client = await world.client({ requestTimeout: '500ms' });
    const working = client.lock('l').run(() => {
      cutOff();
      return 'done';
    });
    expect(await world.until(working)).toBe('done');
  });

  test('runs nothing when the lock is taken', async () => {
    const client = await world.client();
    await world.until(client.lock('l').acquire());
    let ran = false;
    const busy = client.lock('l').run({ wait: 0 }, () => {
      ran = true;
    });
    expect([await world.until(codeOf(busy)), ran]).toEqual(['LOCK_BUSY', false]);
  });
});
