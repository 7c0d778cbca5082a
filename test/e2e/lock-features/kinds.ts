/** Kinds of locks: exclusive, shared, semaphore. Reentrant acquires, and changes from one kind to another. */
import { expect } from 'vitest';
import { type Courses, code, shown, waiters } from './course.ts';

export const KINDS: Courses = {
  async *'an exclusive lock has one holder, and its versions grow'(world) {
    const { client, other, name } = world;
    const first = await client.lock(name).acquire();
    yield 'held';
    expect(await first.check()).toBe(true);
    expect(await other.lock(name).tryAcquire()).toBeUndefined();
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await first.release();
    const second = await waiting;
    expect(second.version).toBeGreaterThan(first.version);
    expect(await client.locks.check([first.version, second.version].map((version) => ({ name, version })))).toEqual([
      false,
      true,
    ]);
    await second.release();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'readers share a lock, and a writer has it alone'(world) {
    const { client, other, name } = world;
    const readers = [await client.rwLock(name).read(), await other.rwLock(name).read()];
    yield 'held';
    expect(await Promise.all(readers.map((reader) => reader.check()))).toEqual([true, true]);
    expect(await client.rwLock(name).tryWrite()).toBeUndefined();
    const writing = other.rwLock(name).write();
    await waiters(world, name, 1);
    expect(await client.rwLock(name).tryRead()).toBeUndefined();
    yield 'waiting';
    for (const reader of readers) await reader.release();
    const writer = await writing;
    expect((await shown(world, name))?.kind).toBe('exclusive');
    await writer.release();
  },

  async *'a writer becomes a reader, and lets in those who wait to read'(world) {
    const { client, other, name } = world;
    const held = await client.rwLock(name).write();
    const { version } = held;
    yield 'held';
    const reading = other.rwLock(name).read();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.downgrade();
    const reader = await reading;
    expect(held.version).toBeGreaterThan(version);
    expect([await held.check(), await reader.check()]).toEqual([true, true]);
    await Promise.all([held.release(), reader.release()]);
  },

  async *'a reader becomes a writer once the others are gone, before the queue; a second one is refused'(world) {
    const { client, other, name } = world;
    const [held, reader] = [await client.rwLock(name).read(), await other.rwLock(name).read()];
    yield 'held';
    const writing = other.rwLock(name).write();
    await waiters(world, name, 1);
    const upgrading = held.upgrade();
    await waiters(world, name, 2);
    await expect(reader.upgrade()).rejects.toThrow(code('LOCK_UPGRADE_CONFLICT'));
    yield 'waiting';
    await reader.release();
    await upgrading;
    expect([held.mode, await held.check()]).toEqual(['exclusive', true]);
    await held.release();
    await (await writing).release();
  },

  async *'a semaphore has so many permits'(world) {
    const { client, other, name } = world;
    const held = await client.semaphore(name, { permits: 3 }).acquire({ permits: 2 });
    yield 'held';
    expect(await shown(world, name)).toMatchObject({ kind: 'semaphore', permits: 2, capacity: 3 });
    const waiting = other.semaphore(name, { permits: 3 }).acquire({ permits: 2 });
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    await (await waiting).release();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'permits come back with the session'(world) {
    const { client, other, name } = world;
    const session = await other.session();
    const held = await session.semaphore(name, { permits: 2 }).acquire({ permits: 2 });
    yield 'held';
    const waiting = client.semaphore(name, { permits: 2 }).acquire({ permits: 2 });
    await waiters(world, name, 1);
    yield 'waiting';
    await session.close();
    expect(held.state).toBe('lost');
    await (await waiting).release();
  },

  async *'the number of permits is changed while they are in use'(world) {
    const { client, other, name } = world;
    const semaphore = client.semaphore(name, { permits: 1 });
    const first = await semaphore.acquire();
    yield 'held';
    const waiting = other.semaphore(name, { permits: 1 }).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await semaphore.setPermits(2);
    const second = await waiting;
    expect(await shown(world, name)).toMatchObject({ permits: 2, capacity: 2 });
    await Promise.all([first.release(), second.release()]);
    await semaphore.resetPermits();
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'a holder enters again, up to a limit, and leaves as often'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ token: 'me', depthMax: 2 });
    yield 'held';
    await held.acquire({ depthMax: 2 });
    await expect(held.acquire({ depthMax: 2 })).rejects.toThrow(code('LOCK_DEPTH_EXCEEDED'));
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    expect(await shown(world, name)).toMatchObject({ holders: [{ depth: 1 }], waiterCount: 1 });
    await held.release();
    await (await waiting).release();
  },

  async *'entering again is off unless it is asked for'(world) {
    const { client, name } = world;
    const held = await client.lock(name).acquire({ token: 'me', depthMax: 1 });
    yield 'held';
    await expect(client.lock(name).acquire({ token: 'me', depthMax: 1 })).rejects.toThrow(code('LOCK_DEPTH_EXCEEDED'));
    // Each has a separate token: the same client waits like any other.
    const waiting = client.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    await (await waiting).release();
  },

  async *'a name in use as one kind is refused as another'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    yield 'held';
    await expect(other.semaphore(name, { permits: 1 }).tryAcquire()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    await expect(client.semaphore(name, { permits: 1 }).tryAcquire()).rejects.toThrow(code('LOCK_KIND_MISMATCH'));
    await (await waiting).release();
  },
};
