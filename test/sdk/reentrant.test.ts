import { taskContext } from '@remora/base';
import type { HeldLock, RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client({}, 1, { task: taskContext });
});

const reentrant = { reentrant: true };

describe('a task that holds a reentrant lock', () => {
  test('enters it again, wherever it goes on, and releases it at the end of the outer `run`', async () => {
    const lock = client.lock('l', reentrant);
    const deeper = async (): Promise<number> => {
      await client.kv.get('k');
      return client.lock('l', reentrant).run({ wait: '1s' }, ({ depth }) => depth);
    };
    const seen = await world.until(
      lock.run(async (held) => {
        const inside = await deeper();
        const again = await lock.acquire();
        const depths = [inside, again.depth, again === held];
        await again.release();
        return [...depths, held.depth, held.state];
      }),
    );
    expect(seen).toEqual([2, 2, true, 1, 'active']);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('does so by `reentrant` of the client as well, and by a set of locks', async () => {
    const all = await world.client({ reentrant: true }, 1, { task: taskContext });
    const done = all.lockAll(['a', 'b']).run(() => all.lock('b').run(() => all.lock('a').run(() => 'done')));
    expect(await world.until(done)).toBe('done');
    expect(await world.until(all.locks.list().toArray())).toEqual([]);
  });

  test('reads it again as a writer, and as a reader', async () => {
    const lock = client.rwLock('l', reentrant);
    const modes = async (run: 'runWrite' | 'runRead'): Promise<string> =>
      lock[run](({ mode: outer }) => lock.runRead(({ mode }) => `${mode} in ${outer}`));
    expect(await world.until(modes('runWrite'))).toBe('exclusive in exclusive');
    expect(await world.until(modes('runRead'))).toBe('shared in shared');
  });

  test('is limited by `depthMax`', async () => {
    const lock = client.lock('l', reentrant);
    const nested = lock.run({ depthMax: 1 }, () => lock.acquire({ depthMax: 1 }));
    expect(await world.until(codeOf(nested))).toBe('LOCK_DEPTH_EXCEEDED');
  });

  test('is alone: another task of the same client waits (TL1)', async () => {
    const lock = client.lock('l', reentrant);
    let inside = 0;
    const most: number[] = [];
    const work = async (): Promise<void> => {
      most.push(++inside);
      await lock.run(() => client.kv.get('k'));
      inside--;
    };
    await world.until(Promise.all([lock.run(work), lock.run(work), lock.run(work)]));
    expect(most).toEqual([1, 1, 1]);
  });
});

describe('a task that would wait for itself', () => {
  type Ask = (held: HeldLock) => Promise<unknown>;
  const rows: readonly { readonly name: string; readonly ask: Ask }[] = [
    { name: 'without a limit', ask: () => client.lock('l').acquire() },
    { name: 'for a limited time', ask: () => client.lock('l').acquire({ wait: '5s' }) },
    { name: 'as a reader', ask: () => client.rwLock('l').read() },
    { name: 'in a set', ask: () => client.lockAll(['k', 'l']).acquire() },
    { name: 'at a barrier', ask: () => client.barrier('l').wait() },
    { name: 'under another token', ask: () => client.lock('l').acquire({ token: 'another' }) },
  ];
  test.each(rows)('$name is refused at once, with what to do (TL2)', async ({ ask }) => {
    const failed = await world.until(
      client
        .lock('l')
        .run(ask)
        .catch((error: Error) => error),
    );
    expect(failed).toMatchObject({ code: 'LOCK_SELF_WAIT' });
    expect(String(failed)).toMatch(/already holds .*"?l"? .*(reentrant: true|release it first)/);
    expect(await world.until(client.locks.list().toArray())).toEqual([]);
  });

  test('as a writer while it reads is told to upgrade, also if the lock is reentrant', async () => {
    const lock = client.rwLock('l', reentrant);
    await expect(world.until(lock.runRead(() => lock.write()))).rejects.toThrow(/call `upgrade`/);
  });

  test('hears LOCK_BUSY if it does not wait', async () => {
    expect(await world.until(client.lock('l').run(() => codeOf(client.lock('l').acquire({ wait: 0 }))))).toBe(
      'LOCK_BUSY',
    );
    expect(await world.until(client.lock('l').run(() => client.lock('l').tryAcquire()))).toBeUndefined();
  });
});

describe('a task does not wait for itself, and is not refused', () => {
  test('with its token, or its handle', async () => {
    const depths = client.lock('l').run(async (held) => {
      const [byToken, byHandle] = [await client.lock('l').acquire({ token: held.token }), await held.acquire()];
      const [first, second] = [byToken.depth, byHandle.depth];
      await byToken.release();
      await byHandle.release();
      return [first, second];
    });
    expect(await world.until(depths)).toEqual([1, 2]);
  });

  test('for another lock, another namespace, or further permits', async () => {
    const done = client.lock('l').run(async () => {
      await client.lock('m').run(() => {});
      await client.lock('l', { namespace: 'n' }).run(() => {});
      const permits = client.semaphore('s', { permits: 2 });
      return permits.run(() => permits.run(() => 'done'));
    });
    expect(await world.until(done)).toBe('done');
  });

  test('when it goes on after its `run` has ended (TL3)', async () => {
    let later: Promise<string> | undefined;
    await world.until(
      client.lock('l').run(() => {
        later = new Promise<void>((resolve) => world.clock.setTimer(1_000, resolve))
          .then(() => client.lock('l').acquire())
          .then(({ state }) => state);
      }),
    );
    expect(await world.until(later ?? Promise.resolve(''))).toBe('active');
  });

  test('when it does not track tasks', async () => {
    const plain = await world.client();
    expect(await world.until(plain.lock('l').run(() => codeOf(plain.lock('l').acquire({ wait: '1s' }))))).toBe(
      'LOCK_TIMEOUT',
    );
  });
});
