/** Waiting for others without a queue: barriers, and rounds that begin and end together. */
import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Courses, shown, type World } from './course.ts';

export const BARRIERS: Courses = {
  async *'a barrier stops all who come, and lets all pass when it is lifted'(world) {
    const { client, other, name } = world;
    const held = await client.barrier(name).hold();
    yield 'held';
    let passed = 0;
    const passing = [client, other, other].map(async (each) => {
      await each.barrier(name).wait();
      passed++;
    });
    await barrierWaiters(world, 3);
    yield 'waiting';
    expect([await held.check(), passed]).toEqual([true, 0]);
    await held.release();
    await Promise.all(passing);
    // Immediately, because nobody holds it.
    await other.barrier(name).wait({ wait: 0 });
  },

  async *'a double barrier lets its parties begin together and end together'(world) {
    const { client, other, name } = world;
    const round = (each: typeof client) => each.doubleBarrier(name, { parties: 2 });
    let entered = 0;
    const first = round(client)
      .enter()
      .finally(() => entered++);
    await barrierWaiters(world, 1);
    yield 'held';
    expect(entered).toBe(0);
    const stays = await Promise.all([first, round(other).enter()]);
    let left = 0;
    const leaving = stays[0].leave().finally(() => left++);
    await barrierWaiters(world, 1);
    yield 'waiting';
    expect(left).toBe(0);
    await Promise.all([leaving, stays[1].leave()]);
    await eventually('nothing is left of it', async () => (await shown(world, name)) === undefined);
  },
};

function barrierWaiters(world: World, count: number): Promise<unknown> {
  return eventually(`${count} wait to pass`, async () => (await shown(world, world.name))?.passing === count);
}
