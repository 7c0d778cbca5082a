import { expect, test } from 'vitest';
import { World } from '../support/sdk-world.ts';

test('a party that was taken out of a double barrier by force is done with it without an error, as any holder', async () => {
  const world = new World();
  const client = await world.client();
  const stay = await world.until(client.doubleBarrier('round', { parties: 1 }).enter());
  await world.until(client.locks.forceRelease('round'));
  await world.until(stay[Symbol.asyncDispose]());
  expect(stay.state).toBe('released');
  await world.until(stay.leave());
});

test.each(['leave', Symbol.asyncDispose] as const)(
  'whoever has left a double barrier works under it no longer: %s',
  async (way) => {
    const world = new World();
    const client = await world.client();
    const stay = await world.until(client.doubleBarrier('round', { parties: 1 }).enter());
    const { signal } = stay;
    expect(signal.aborted).toBe(false);
    await world.until(stay[way]());
    expect(signal.aborted).toBe(true);
    expect(stay.signal).toBe(signal);
  },
);
