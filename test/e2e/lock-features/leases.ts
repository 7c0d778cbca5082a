/** Locks with separate leases: for a fixed time, forever, by a condition, abandoned. */
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Courses, code, shown, SURVIVING_TTL_MS as TTL_MS, waiters } from './course.ts';

export const LEASES: Courses = {
  async *'a lock is held for a set time, unless it is extended'(world) {
    const { client, other, name } = world;
    const long = await client.lock(`${name}/long`).acquire({ ttl: '60s', renew: false });
    yield 'held';
    const { remainingMs } = long;
    await long.extend();
    expect(long.remainingMs).toBeGreaterThan(remainingMs);
    const short = await client.lock(name).acquire({ ttl: TTL_MS, renew: false });
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await long.check()).toBe(true);
    const next = await waiting;
    expect([short.state, short.signal.aborted]).toEqual(['lost', true]);
    await Promise.all([next.release(), long.release()]);
  },

  async *'a lock is renewed, and held no longer than its limit'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ ttl: TTL_MS, maxHold: '2s' });
    const { signal } = held;
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'held';
    await eventually('the limit is over', () => signal.aborted);
    yield 'waiting';
    await (await waiting).release();
    expect(held.state).toBe('lost');
  },

  async *'a lock without expiry outlives its holder, until it is released by force'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ ttl: 'never' });
    await held.orphan();
    yield 'held';
    expect(await other.locks.check([{ name, version: held.version }])).toEqual([true]);
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await shown(world, name)).toMatchObject({ holders: [{ version: held.version }], waiterCount: 1 });
    await other.locks.forceRelease(name);
    await (await waiting).release();
    // Its session was only for that lock, and nobody else would ever end it.
    const isGone = async () => (await other.sessions.show(held.handle.lease)) === undefined;
    await eventually('its session has ended', isGone);
  },

  async *'a lock that is left to its TTL is free when that is over, and not before'(world) {
    const { client, other, name } = world;
    const held = await client.lock(name).acquire({ ttl: TTL_MS });
    yield 'held';
    expect(await held.check()).toBe(true);
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    const { version } = held;
    await held.orphan();
    expect(await client.lock(name).tryAcquire()).toBeUndefined();
    expect(await other.locks.check([{ name, version }])).toEqual([true]);
    const next = await waiting;
    expect(next.version).toBeGreaterThan(version);
    await next.release();
  },

  async *'when a silent holder loses its lock is agreed on, and changed while it is held'(world) {
    const { client, other, name } = world;
    const changed = `${name}/changed`;
    const condition = { heartbeat: TTL_MS / 6, serverMisses: 6 };
    const [held, patient] = [
      await client.lock(name).acquire({ condition }),
      await client.lock(changed).acquire({ condition }),
    ];
    yield 'held';
    const agreed = { heartbeatMs: TTL_MS / 6, serverMisses: 6 };
    const shown = await other.locks.details(name);
    expect(shown?.holders).toMatchObject([{ version: held.version, terms: { ttlMs: TTL_MS, condition: agreed } }]);
    const { remainingMs = 0 } = shown?.holders[0]?.terms ?? {};
    expect(remainingMs > 0 && remainingMs <= TTL_MS).toBe(true);
    await expect(patient.setCondition({ ...condition, holderMisses: 6 })).rejects.toThrow(code('INVALID_ARGUMENT'));
    await patient.setCondition({ heartbeat: '10s', serverMisses: 6 });
    const waiting = [name, changed].map((each) => other.lock(each).acquire());
    await Promise.all([name, changed].map((each) => waiters(world, each, 1)));
    yield 'waiting';
    // Neither of them is renewed from now on.
    await patient.orphan();
    await held.orphan();
    const next = await waiting[0];
    expect(await client.locks.check([{ name: changed, version: patient.version }])).toEqual([true]);
    await client.locks.forceRelease(changed);
    await Promise.all([next?.release(), (await waiting[1])?.release()]);
  },
};
