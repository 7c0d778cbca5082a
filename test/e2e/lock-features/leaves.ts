/** The data that is shown with a lock, the data that it leaves behind, and writes under a lock. */
import { expect } from 'vitest';
import { type Courses, code, shown, waiters } from './course.ts';

const DELAY_MS = 1_000;

export const LEAVES: Courses = {
  async *'data is seen with the lock'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ data: 'of the first' });
    yield 'held';
    expect((await shown(world, name))?.holders[0]?.data.toString()).toBe('of the first');
    const waiting = other.lock(name).acquire({ data: 'of the second' });
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    const next = await waiting;
    expect((await shown(world, name))?.holders[0]?.data.toString()).toBe('of the second');
    await next.release();
  },

  async *'data are changed while the lock is held, and stay for the next one if that is asked for'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ data: 'first', keepData: true });
    await held.setData('second');
    yield 'held';
    expect((await shown(world, name))?.holders[0]?.data.toString()).toBe('second');
    await held.setData('third');
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await held.release();
    const next = await waiting;
    expect(Buffer.from(next.previousData ?? []).toString()).toBe('third');
    await next.release();
  },

  async *'a lock-delay keeps others off when the session has ended without a release'(world) {
    const { client, other, name } = world;
    const session = await client.session();
    await session.lock(name).acquire({ lockDelay: DELAY_MS });
    yield 'held';
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    const endedMs = performance.now();
    await other.sessions.close(session.lease);
    await (await waiting).release();
    expect(performance.now() - endedMs).toBeGreaterThanOrEqual(DELAY_MS);
  },

  async *'what is written under a lock is written while it is held, and not afterwards'(world) {
    const { client, other, name } = world;
    const first = await client.lock(name).acquire();
    const { version } = first;
    await other.kv.put(name, 'a', { fence: first });
    yield 'held';
    await other.kv.put(name, 'b', { fence: { name, version } });
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    await client.kv.put(name, 'c', { fence: first });
    await first.release();
    const second = await waiting;
    await expect(client.kv.put(name, 'late', { fence: { name, version } })).rejects.toThrow(code('FENCED'));
    const { succeeded } = await client.kv.txn({
      compare: [{ held: { name, version } }],
      success: [{ put: name, value: 'late' }],
      failure: [{ put: `${name}/refused`, value: 'yes' }],
    });
    expect([succeeded, (await client.kv.get(name))?.value.toString()]).toEqual([false, 'c']);
    await other.kv.put(name, 'd', { fence: second });
    await second.release();
  },
};
