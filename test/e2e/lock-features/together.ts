/** What the SDK builds on locks: several locks at once, work under a lock, and its result. */
import { expect } from 'vitest';
import { type Courses, shown, waiters } from './course.ts';

export const TOGETHER: Courses = {
  async *'several locks are acquired all or none'(world) {
    const { client, other, name } = world;
    const [a, b, c] = ['a', 'b', 'c'].map((end) => `${name}/${end}`) as [string, string, string];
    const held = await client.lockAll([b, a]).acquire();
    yield 'held';
    expect(await held.check()).toBe(true);
    expect(await other.lockAll([c, b]).tryAcquire()).toBeUndefined();
    expect(await shown(world, c)).toBeUndefined();
    const waiting = other.lockAll([c, b]).acquire();
    await waiters(world, b, 1);
    yield 'waiting';
    await held.release();
    const next = await waiting;
    const checks = [c, b].map((each, i) => ({ name: each, version: next.versions[i] ?? 0 }));
    expect(await client.locks.check(checks)).toEqual([true, true]);
    await next.release();
    expect(await Promise.all([a, b, c].map((each) => shown(world, each)))).toEqual([undefined, undefined, undefined]);
  },

  async *'work under a lock gives it back, and its error is the one that is told'(world) {
    const { client, other, name } = world;
    let end: (error: Error) => void = () => {};
    let version = 0;
    const working = client.lock(name).run(async (lock) => {
      version = lock.version;
      await new Promise((_, reject) => {
        end = reject;
      });
    });
    const failed = expect(working).rejects.toThrow('of the work');
    yield 'held';
    expect(await other.locks.check([{ name, version }])).toEqual([true]);
    const next = other.lock(name).run(({ version: mine }) => mine);
    await waiters(world, name, 1);
    yield 'waiting';
    end(new Error('of the work'));
    await failed;
    expect(await next).toBeGreaterThan(version);
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'an acquire tells how it went'(world) {
    const { client, other, endpoints, name } = world;
    const held = await client.lock(name).acquire();
    expect(held.stats).toMatchObject({ queuePosition: 0, attempts: 1 });
    yield 'held';
    const begunMs = performance.now();
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    const waitedMs = performance.now() - begunMs;
    await held.release();
    const next = await waiting;
    expect(next.stats.queuePosition).toBe(1);
    expect(next.stats.waitMs).toBeGreaterThan(0.9 * waitedMs);
    expect(endpoints).toContain(next.stats.gateway);
    await next.release();
  },
};
