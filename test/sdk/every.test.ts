import { SeededRandom } from '@remora/base';
import type { RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { World } from '../support/sdk-world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});

interface Started {
  readonly by: number;
  readonly atMs: number;
}

/** A schedule in each of the clients, which notes what it starts. */
function schedules(clients: readonly RemoraClient[], interval: '10s' | '1m' = '10s'): Started[] {
  const started: Started[] = [];
  clients.forEach((client, by) => {
    client.every(interval, 'nightly', ({ atMs }) => {
      started.push({ by, atMs });
    });
  });
  return started;
}

function ticksOf(started: readonly Started[]): readonly number[] {
  return started.map(({ atMs }) => atMs).sort((a, b) => a - b);
}

test('each tick is started once over all clients, and is a multiple of the interval', async () => {
  const clients = [await world.client(), await world.client(), await world.client()];
  const started = schedules(clients);
  await world.run(60_500);
  const ticks = ticksOf(started);
  expect([ticks.length, new Set(ticks).size]).toEqual([6, 6]);
  expect(ticks.every((atMs) => atMs % 10_000 === 0)).toBe(true);
});

test('the key records the latest tick, and the client that has started it', async () => {
  const client = await world.client({ attributes: { host: 'app-1', pid: '4711' } });
  const started = schedules([client]);
  await world.run(20_500);
  const record = (await world.until(client.kv.get('remora/every/nightly')))?.json();
  expect(record).toMatchObject({ atMs: started.at(-1)?.atMs, by: { host: 'app-1', pid: '4711' } });
});

test.each([1, 2, 3, 4])(
  'no tick is started twice when answers are lost and clocks differ, with seed %i (EV1, EV2)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const clients = await Promise.all([0.9, 1, 1.1].map((rate) => world.client({ requestTimeout: 500 }, rate)));
    world.backend.onApplied = (command) => {
      if (command.type === 'txn' && random.int(3) === 0) world.sever();
    };
    const started = schedules(clients);
    await world.run(300_000);
    const ticks = ticksOf(started);
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.length).toBeGreaterThan(25);
  },
);

test('a claim whose answer is lost is started by the process that made it (EV2)', async () => {
  const client = await world.client({ retry: { attempts: 1 }, requestTimeout: 500 });
  let lost = 0;
  world.backend.onApplied = (command) => {
    if (command.type === 'txn' && lost++ < 3) world.sever();
  };
  const started = schedules([client]);
  await world.run(30_500);
  expect(lost).toBeGreaterThanOrEqual(3);
  expect(ticksOf(started)).toHaveLength(3);
});

test('a tick whose process dies after its claim is lost, and the next one is started (EV3)', async () => {
  const [dying, other] = [await world.client(), await world.client()];
  const begun: number[] = [];
  const first = dying.every('10s', 'n', ({ atMs }) => {
    begun.push(atMs);
    void dying.close();
    return new Promise(() => {}); // It never ends.
  });
  await world.run(10_500);
  const started: number[] = [];
  other.every('10s', 'n', ({ atMs }) => started.push(atMs));
  await world.run(20_500);
  expect([begun.length, started.length, first.name]).toEqual([1, 2, 'n']);
  expect(started).not.toContain(begun[0]);
});

describe('work', () => {
  test('that is in progress is not begun again, and others start the ticks meanwhile (EV4)', async () => {
    const [slow, other] = [await world.client(), await world.client()];
    let running = 0;
    let most = 0;
    slow.every('10s', 'n', async () => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => world.clock.setTimer(35_000, resolve));
      running--;
    });
    await world.run(10_500);
    const started: number[] = [];
    other.every('10s', 'n', ({ atMs }) => started.push(atMs));
    await world.run(30_000);
    expect([most, started.length]).toEqual([1, 3]);
  });

  test('that fails is reported, and the schedule goes on', async () => {
    const client = await world.client();
    const errors: unknown[] = [];
    client.every('10s', 'n', () => Promise.reject(new Error('no')), { onError: (error) => errors.push(error) });
    await world.run(30_500);
    expect(errors.map(String)).toEqual(['Error: no', 'Error: no', 'Error: no']);
  });

  test('is told when the schedule ends, and `release` waits for it', async () => {
    const client = await world.client();
    const seen: string[] = [];
    const every = client.every('10s', 'n', async ({ signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      seen.push('ended');
    });
    await world.run(10_500);
    await world.until(every.release().then(() => seen.push('released')));
    await world.run(30_000);
    expect(seen).toEqual(['ended', 'released']);
  });
});

test('a key that records something else is left alone, and nothing is started', async () => {
  const client = await world.client();
  await world.until(client.kv.put('mine', 'hello'));
  const errors: unknown[] = [];
  const started: number[] = [];
  client.every('10s', 'n', ({ atMs }) => started.push(atMs), { key: 'mine', onError: (error) => errors.push(error) });
  await world.run(10_500);
  expect([started, errors.length, (await world.until(client.kv.get('mine')))?.text()]).toEqual([[], 1, 'hello']);
});

test.each(['500ms', '366d', 1_000.5] as const)('an interval of %s is refused', async (interval) => {
  const client = await world.client();
  expect(() => client.every(interval, 'n', () => {})).toThrow(/expected an interval from 1 s to 365 days/);
});
