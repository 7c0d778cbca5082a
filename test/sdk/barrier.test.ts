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
