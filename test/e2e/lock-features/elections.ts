/** Elections: candidates, proclamations, and resumption after a restart. */
import { connect } from 'remora';
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Courses, waiters } from './course.ts';

export const ELECTIONS: Courses = {
  async *'a leader proclaims, all who observe are told, and who resigns makes way for the next candidate'(world) {
    const { client, other, name } = world;
    const observing = client.election(name).observe();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const leader of observing)
        seen.push(leader === undefined ? '-' : Buffer.from(leader.value).toString());
    })();
    await eventually('nobody leads', () => seen.at(-1) === '-');
    const first = await client.election(name).campaign({ value: 'first' });
    await first.proclaim('first, at work');
    await eventually('both are told', () => seen.length === 3);
    expect(seen).toEqual(['-', 'first', 'first, at work']);
    yield 'held';
    expect((await other.election(name).leader())?.version).toBe(first.version);
    await first.proclaim('first, still at work');
    const campaigning = other.election(name).campaign({ value: 'second' });
    await waiters(world, name, 1);
    yield 'waiting';
    await eventually('the proclamation is told', () => seen.at(-1) === 'first, still at work');
    await first.release();
    const second = await campaigning;
    expect(second.version).toBeGreaterThan(first.version);
    await eventually('the next leader is told', () => seen.at(-1) === 'second');
    await second.release();
    observing.close();
    await reading;
  },

  async *'a new process goes on with a leadership under its version'(world) {
    const { client, other, endpoints, name } = world;
    // As if it had died: its session is not renewed, and its lock is not released.
    const earlier = await client.election(name).campaign({ value: 'leader', ttl: '60s' });
    const handle = JSON.parse(JSON.stringify(earlier.handle));
    yield 'held';
    await using restarted = await connect({ endpoints });
    const resumed = await restarted.election(name).resume(handle);
    expect([resumed.version, await resumed.check()]).toEqual([earlier.version, true]);
    const campaigning = other.election(name).campaign();
    await waiters(world, name, 1);
    yield 'waiting';
    await resumed.proclaim('again');
    await resumed.release();
    await (await campaigning).release();
  },
};
