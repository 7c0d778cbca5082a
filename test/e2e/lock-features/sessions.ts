/** What a lock belongs to, and how it ends: sessions, heartbeats, owners, forced releases, versions. */
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Courses, code, SURVIVING_TTL_MS, shown, waiters } from './course.ts';

export const SESSIONS: Courses = {
  async *'heartbeats keep a session for longer than its TTL, at whichever gateway is left'(world) {
    const { client, other, name } = world;
    const session = await client.session({ ttl: SURVIVING_TTL_MS });
    const begunMs = performance.now();
    const held = await session.lock(name).acquire();
    const { signal } = held;
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await eventually('the TTL is over', () => performance.now() > begunMs + 1.5 * SURVIVING_TTL_MS);
    expect([await held.check(), signal.aborted, held.state]).toEqual([true, false, 'active']);
    await session.close();
    await (await waiting).release();
  },

  async *'one session has many locks, which end with it'(world) {
    const { client, other, name } = world;
    const names = Array.from({ length: 5 }, (_, i) => `${name}/${i}`);
    const session = await client.session();
    const held = await Promise.all(names.map((each) => session.lock(each).acquire()));
    yield 'held';
    const waiting = names.map((each) => other.lock(each).acquire());
    await Promise.all(names.map((each) => waiters(world, each, 1)));
    yield 'waiting';
    await session.close();
    const granted = await Promise.all(waiting);
    expect(held.map(({ state }) => state)).toEqual(names.map(() => 'lost'));
    await Promise.all(granted.map((lock) => lock.release()));
  },

  async *'the signal aborts when the session has ended'(world) {
    const { client, other, name } = world;
    const session = await client.session();
    const held = await session.lock(name).acquire();
    const { signal } = held;
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(signal.aborted).toBe(false);
    await other.lease.revoke(session.lease);
    await (await waiting).release();
    await eventually('it is told', () => signal.aborted);
    expect([held.state, signal.reason]).toEqual(['lost', code('SESSION_EXPIRED')]);
  },

  async *'a session whose health check fails some times in a row ends'(world) {
    const { client, other, name } = world;
    let well = true;
    const session = await client.session({ health: { check: () => well, interval: '100ms', failures: 3 } });
    const held = await session.lock(name).acquire();
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await held.check()).toBe(true);
    well = false;
    await (await waiting).release();
    expect([held.state, held.signal.aborted]).toEqual(['lost', true]);
  },

  async *'only its owner releases a lock, and only while it has it'(world) {
    const { client, other, name } = world;
    const session = await client.session();
    const held = await session.lock(name).acquire();
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await other.locks.forceRelease(name);
    const next = await waiting;
    await expect(held.release()).rejects.toThrow(code('LOCK_NOT_HELD'));
    expect(await next.check()).toBe(true);
    await next.release();
    await session.close();
  },

  async *'a lock is taken by force, the next one has it, and its holder is told'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire();
    const { signal } = held;
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await other.locks.forceRelease(name);
    const next = await waiting;
    await eventually('it is told', () => signal.aborted);
    expect([await next.check(), signal.reason]).toEqual([true, code('LOCK_NOT_HELD')]);
    await next.release();
  },

  async *'who has taken a lock by force, and why, stays on record'(world) {
    const { client, other, name } = world;
    await client.lock(name).acquire();
    await other.locks.forceRelease(name, { by: 'an operator', reason: 'it is stuck' });
    yield 'held';
    expect(await shown(world, name)).toMatchObject({
      holders: [],
      forced: { by: 'an operator', reason: 'it is stuck' },
    });
    const next = await other.lock(name).acquire();
    const waiting = client.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await other.locks.forget(name)).toBe(true);
    expect((await shown(world, name))?.forced).toBeUndefined();
    await next.release();
    await (await waiting).release();
  },

  async *'a guard lets in no version below one that it has seen'(world) {
    const { client, other, name } = world;
    const first = await client.lock(name).acquire();
    const guard = other.fence.guard();
    expect(await guard.run(name, first.version, () => 'first')).toBe('first');
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await first.release();
    const second = await waiting;
    // A guard without any known version asks the cluster.
    await expect(client.fence.guard().run(name, first.version, () => 'late')).rejects.toThrow(code('FENCED'));
    expect(await guard.run(name, second.version, () => 'second')).toBe('second');
    await expect(guard.run(name, first.version, () => 'late')).rejects.toThrow(code('FENCED'));
    await second.release();
  },

  async *'locks are listed by namespace and prefix, in pages'(world) {
    const { client, other, name } = world;
    const names = ['a', 'b', 'c'].map((end) => `${name}/${end}`);
    const options = { namespace: name };
    const held = await Promise.all(names.map((each) => client.lock(each, options).acquire()));
    const others = [await client.lock(`${name}/b`).acquire(), await client.lock('z', options).acquire()];
    yield 'held';
    const waiting = other.lock(`${name}/b`, options).acquire();
    await eventually('it waits', async () => {
      return (await client.locks.show(`${name}/b`, options))?.waiterCount === 1;
    });
    yield 'waiting';
    const first = await other.locks.list({ ...options, prefix: `${name}/`, pageSize: 2 }).page();
    expect(first.items.map(({ lock, waiterCount }) => [lock.name.toString(), waiterCount])).toEqual([
      [names[0], 0],
      [names[1], 1],
    ]);
    const rest = await other.locks.list({ ...options, prefix: `${name}/` }).page(first.cursor);
    expect(rest.cursor).toBeUndefined();
    expect(rest.items.map(({ lock }) => lock.name.toString())).toEqual([names[2]]);
    await Promise.all([...held, ...others].map((lock) => lock.release()));
    await (await waiting).release();
    expect(await other.locks.list(options).toArray()).toEqual([]);
  },

  async *'sessions are listed by their attributes, shown with their locks, and closed by whoever may'(world) {
    const { client, other, name } = world;
    const attributes = { course: name };
    const session = await client.session({ attributes });
    const held = await session.lock(name).acquire();
    yield 'held';
    const sessions = await other.sessions.list({ attributes }).toArray();
    expect(sessions.map(({ id }) => id)).toEqual([session.lease]);
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    const details = await other.sessions.show(session.lease);
    expect(details).toMatchObject({
      attributes,
      locks: [{ lock: { name: Buffer.from(name) }, version: held.version }],
    });
    await other.sessions.close(session.lease);
    await (await waiting).release();
    expect(await other.sessions.show(session.lease)).toBeUndefined();
    await eventually('its client is told', () => held.signal.aborted);
  },
};
