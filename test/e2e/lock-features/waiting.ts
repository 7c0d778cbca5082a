/** How clients wait: in order, with a time limit, until they cancel. How waiters that are gone are skipped. */

import { ownerId } from '@remora/lock';
import type { HeldLock } from 'remora';
import { expect } from 'vitest';
import { type Courses, code, shown, waiters } from './course.ts';

const QUEUE = 20;

export const WAITING: Courses = {
  async *'try does not wait'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    expect(await other.lock(name).tryAcquire()).toBeUndefined();
    await expect(other.lock(name).acquire({ wait: 0 })).rejects.toThrow(code('LOCK_BUSY'));
    yield 'waiting';
    expect(await shown(world, name)).toMatchObject({ waiterCount: 0 });
    await held.release();
    await (await other.lock(name).tryAcquire())?.release();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'the order is that in which they came, and a release wakes one'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    const granted: HeldLock[] = [];
    const order: number[] = [];
    const all: Promise<void>[] = [];
    for (let i = 0; i < QUEUE; i++) {
      const waiting = (i % 2 === 0 ? client : other).lock(name).acquire({ token: String(i) });
      all.push(
        waiting.then((lock) => {
          order.push(i);
          granted.push(lock);
        }),
      );
      await waiters(world, name, i + 1);
    }
    yield 'waiting';
    let [next]: (HeldLock | undefined)[] = [held];
    for (let i = 0; i < QUEUE; i++) {
      await next?.release();
      await all[i];
      expect(granted).toHaveLength(i + 1);
      next = granted[i];
    }
    await next?.release();
    expect(order).toEqual(Array.from({ length: QUEUE }, (_, i) => i));
    const versions = granted.map(({ version }) => version);
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  },

  async *'a wait that has timed out leaves nothing behind'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    await expect(other.lock(name).acquire({ wait: 100 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    await waiters(world, name, 0);
    const late = expect(other.lock(name).acquire({ wait: '1s' })).rejects.toThrow(code('LOCK_TIMEOUT'));
    yield 'waiting';
    await late;
    await waiters(world, name, 0);
    await held.release();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'a wait that is given up leaves nothing behind, and holds nobody up'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    const controller = new AbortController();
    const canceled = expect(other.lock(name).acquire({ signal: controller.signal })).rejects.toThrow(code('CANCELED'));
    await waiters(world, name, 1);
    const behind = other.lock(name).acquire();
    await waiters(world, name, 2);
    yield 'waiting';
    controller.abort();
    await canceled;
    await waiters(world, name, 1);
    await held.release();
    await (await behind).release();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'waiters of a session that has ended are passed over, and told'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    const session = await other.session();
    yield 'held';
    const dead = expect(session.lock(name).acquire()).rejects.toThrow(code('SESSION_EXPIRED'));
    await waiters(world, name, 1);
    const behind = client.lock(name).acquire();
    await waiters(world, name, 2);
    yield 'waiting';
    await other.lease.revoke(session.lease);
    await dead;
    await held.release();
    await (await behind).release();
  },

  async *'who waits is seen, since when and in which order'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ token: 'holder' });
    yield 'held';
    const first = other.lock(name).acquire({ token: 'first' });
    await waiters(world, name, 1);
    const second = client.rwLock(name).read({ token: 'second' });
    await waiters(world, name, 2);
    const before = await shown(world, name);
    expect(before).toMatchObject({
      holders: [{ owner: { id: ownerId('holder') }, version: held.version, mode: 'exclusive' }],
      waiters: [
        { owner: { id: ownerId('first') }, position: 1, mode: 'exclusive' },
        { owner: { id: ownerId('second') }, position: 2, mode: 'shared' },
      ],
    });
    yield 'waiting';
    expect((await shown(world, name))?.waiters.map(({ sinceMs }) => sinceMs)).toEqual(
      before?.waiters.map(({ sinceMs }) => sinceMs),
    );
    await held.release();
    await (await first).release();
    await (await second).release();
  },
};
