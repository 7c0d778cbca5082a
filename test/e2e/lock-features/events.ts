/** Events of locks, and requests to release a lock. */
import { LockStates, type LocksWatchEvent } from 'remora';
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Courses, shown, waiters } from './course.ts';

export const EVENTS: Courses = {
  async *'what happens to locks is told in order, and their states anew after a change of leader'(world) {
    const { client, other, name } = world;
    const events = other.locks.events({ prefix: name });
    const [states, told]: [LockStates, LocksWatchEvent[]] = [new LockStates(), []];
    const reading = (async () => {
      for await (const event of events) {
        states.apply(event);
        told.push(event);
      }
    })();
    const held = await client.lock(name).acquire();
    const known = () => states.get(held.id);
    const isHeld = () => known()?.holders[0]?.version === held.version;
    await eventually('the grant is told', isHeld);
    told.length = 0;
    yield 'held';
    await eventually('it is told of again', () => told.some(({ type }) => type === 'begin') && isHeld());
    const waiting = client.lock(name).acquire();
    await waiters(world, name, 1);
    await eventually('the waiter is told of', () => known()?.waiterCount === 1);
    told.length = 0;
    yield 'waiting';
    await eventually('both are told of again', () => told.at(-1)?.type === 'live' && known()?.waiterCount === 1);
    told.length = 0;
    await held.release();
    const next = await waiting;
    await eventually('the hand-over is told', () => told.length === 2);
    expect(told.map(({ type }) => type)).toEqual(['released', 'acquired']);
    expect(known()).toMatchObject({ holders: [{ version: next.version }], waiterCount: 0 });
    await next.release();
    await eventually('the release is told', () => known() === undefined);
    events.close();
    await reading;
  },

  async *'a holder is asked to let go, may decline, and agrees by its release'(world) {
    const { client, other, name } = world;
    const asked: string[] = [];
    const held = await client.lock(name).acquire({ onRevoke: ({ by, reason }) => void asked.push(`${by}: ${reason}`) });
    expect(await other.lock(name).revoke({ by: 'first', reason: 'may I?', wait: '500ms' })).toBe('declined');
    const revoking = other.lock(name).revoke({ by: 'second', reason: 'please', wait: '60s' });
    await eventually('it is on record', async () => (await shown(world, name))?.revocation?.by === 'second');
    yield 'held';
    await eventually('it is asked', () => asked.includes('second: please'));
    const waiting = other.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await held.check()).toBe(true);
    await held.release();
    expect(await revoking).toBe('released');
    await (await waiting).release();
    expect(await other.lock(name).revoke()).toBe('free');
  },
};
