/** A signal that its holder has kept, as `run(({ signal }) => …)` does, rather than asked the handle for anew. */
import { expect, test } from 'vitest';
import { BusyThread } from '../support/busy-thread.ts';
import { World } from '../support/sdk-world.ts';

async function busyClient() {
  const world = new World();
  const thread = new BusyThread(world.clock);
  const client = await world.client({}, 1, { clock: thread });
  return { world, thread, client };
}

test.each([
  { name: 'of a lock', acquire: async ({ client, world }: Busy) => world.until(client.lock('l').acquire()) },
  {
    name: 'of several locks',
    acquire: async ({ client, world }: Busy) => world.until(client.lockAll(['a', 'b']).acquire()),
  },
  { name: 'of a session', acquire: async ({ client, world }: Busy) => world.until(client.session({ ttl: '10s' })) },
  {
    name: 'of a leadership',
    acquire: async ({ client, world }: Busy) => world.until(client.election('e').campaign({ ttl: '10s' })),
  },
  {
    name: 'of a double barrier',
    acquire: async ({ client, world }: Busy) => world.until(client.doubleBarrier('d', { parties: 1 }).enter()),
  },
])('a kept signal $name is aborted once its deadline has passed, though its thread was busy', async ({ acquire }) => {
  const busy = await busyClient();
  const { signal } = await acquire(busy);
  let fired = 0;
  signal.addEventListener('abort', () => fired++);
  expect(signal.aborted).toBe(false);
  expect(() => signal.throwIfAborted()).not.toThrow();
  busy.thread.begin();
  await busy.world.run(10_000);
  expect(() => signal.throwIfAborted()).toThrow(/lost/);
  expect([signal.aborted, signal.reason.code, fired]).toEqual([true, 'SESSION_EXPIRED', 1]);
  busy.thread.end();
  await busy.world.run(100);
  expect(fired).toBe(1);
});

type Busy = Awaited<ReturnType<typeof busyClient>>;

test('a kept signal of a lock that was released is not aborted by what becomes of the session', async () => {
  const { world, thread, client } = await busyClient();
  const held = await world.until(client.lock('l').acquire());
  const { signal } = held;
  await world.until(held.release());
  thread.begin();
  await world.run(10_000);
  expect(signal.aborted).toBe(false);
  thread.end();
  await world.until(client.close());
});
