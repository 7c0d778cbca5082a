/** An acquire that came to nothing says so in the words of what was asked for. */
import type { RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { World } from '../support/sdk-world.ts';

type Call = (client: RemoraClient, wait: number) => Promise<unknown>;
const all = { permits: 2 };

test.each<{
  readonly taken: Call;
  readonly call: Call;
  readonly code?: string;
  readonly busy: string;
  readonly late: string;
}>([
  {
    taken: (c) => c.lock('n').acquire(),
    call: (c, wait) => c.lock('n').acquire({ wait }),
    busy: 'the lock is taken',
    late: 'the lock was not granted in time',
  },
  {
    taken: (c) => c.semaphore('n', all).acquire(),
    call: (c, wait) => c.semaphore('n', all).acquire({ wait, permits: 2 }),
    busy: 'not enough permits are free, or others wait for them',
    late: 'the permits were not granted in time',
  },
  {
    taken: (c) => c.barrier('n').hold(),
    call: (c, wait) => c.barrier('n').wait({ wait }),
    busy: 'somebody still holds it',
    late: 'somebody still held it when the wait ended',
  },
  {
    taken: async () => {},
    call: (c, wait) => c.doubleBarrier('n', { parties: 2 }).enter({ wait }),
    code: 'LOCK_TIMEOUT',
    busy: 'only 1 of 2 parties have entered',
    late: 'the other parties did not enter in time',
  },
])('$busy; $late', async ({ taken, call, code = 'LOCK_BUSY', busy, late }) => {
  const world = new World();
  const [client, other] = [await world.client(), await world.client()];
  await world.until(taken(other, 0));
  await expect(world.until(call(client, 0))).rejects.toMatchObject({
    code,
    message: `${busy}${code === 'LOCK_BUSY' ? ': default/n' : ''}`,
  });
  await expect(world.until(call(client, 500))).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
    message: `${late}: default/n`,
  });
});
