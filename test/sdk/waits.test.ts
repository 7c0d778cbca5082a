import type { HeldLock, RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

const WAIT_MS = 500;
/** Requests and their answers take a few turns of the loop, and time passes in steps of 5 ms. */
const SLACK_MS = 50;

const wait = '500ms';
type Call = (client: RemoraClient) => Promise<unknown>;
const CALLS: readonly (readonly [string, Call])[] = [
  ['lock.acquire', (c) => c.lock('l').acquire({ wait })],
  ['lock.acquire with a lease of its own', (c) => c.lock('l').acquire({ wait, ttl: '1m' })],
  ['lock.run', (c) => c.lock('l').run({ wait }, () => {})],
  ['rwLock.read', (c) => c.rwLock('l').read({ wait })],
  ['rwLock.write', (c) => c.rwLock('l').write({ wait })],
  ['semaphore.acquire', (c) => c.semaphore('s', { permits: 2 }).acquire({ wait })],
  ['lockAll.acquire', (c) => c.lockAll(['l', 'm']).acquire({ wait })],
  ['election.campaign', (c) => c.election('e').campaign({ wait })],
  ['barrier.wait', (c) => c.barrier('b').wait({ wait })],
  ['doubleBarrier.enter', (c) => c.doubleBarrier('d', { parties: 2 }).enter({ wait })],
  ['lock.revoke', (c) => c.lock('l').revoke({ wait })],
];

let world: World;
beforeEach(() => {
  world = new World();
});

function cutOff(): void {
  for (const address of GATEWAYS) world.isolated.add(address);
}

/** How long a call takes to fail, in ms. */
async function failsAfter(call: Promise<unknown>): Promise<number> {
  const beganMs = world.clock.monotonicMs();
  expect(await world.until(codeOf(call))).toMatch(/^(LOCK_TIMEOUT|DEADLINE_EXCEEDED)$/);
  return world.clock.monotonicMs() - beganMs;
}

describe('a wait ends when it says, and leaves nothing behind, though the cluster does not answer', () => {
  test.each(CALLS)('%s, before there is a session', async (_name, call) => {
    const client = await world.client();
    cutOff();
    const tookMs = await failsAfter(call(client));
    expect([tookMs >= WAIT_MS, tookMs <= WAIT_MS + SLACK_MS], `${tookMs} ms`).toEqual([true, true]);
  });

  test.each(CALLS)('%s, with a session', async (_name, call) => {
    const client = await world.client({ sessionTtl: '1m' });
    await world.until(client.lock('other').acquire());
    cutOff();
    const tookMs = await failsAfter(call(client));
    expect([tookMs >= WAIT_MS, tookMs <= WAIT_MS + SLACK_MS], `${tookMs} ms`).toEqual([true, true]);
    world.isolated.clear();
    await world.run(15_000);
    expect(
      (await world.until(client.locks.list().toArray())).map(({ lock }) => Buffer.from(lock.name).toString()),
    ).toEqual(['other']);
  });

  test('of a set some of which are held already', async () => {
    const client = await world.client();
    const other = await world.client();
    await world.until(other.lock('m').acquire());
    const all = client.lockAll(['l', 'm']).acquire({ wait });
    await world.run(WAIT_MS / 2);
    cutOff();
    expect(await failsAfter(all)).toBeLessThanOrEqual(WAIT_MS / 2 + 250 + SLACK_MS);
    world.isolated.clear();
    await world.run(15_000);
    expect(await world.until(other.locks.list().toArray())).toHaveLength(1);
  });
});

describe('a time in a message is the one that the caller named', () => {
  const message = async (call: Promise<unknown>): Promise<string> => {
    const failed = call.then(
      () => 'it did not fail',
      (error: Error) => error.message,
    );
    return world.until(failed);
  };

  test.each([
    { timeout: '2s', ms: 2_000 },
    { timeout: '957ms', ms: 957 },
    { timeout: 1, ms: 1 },
  ] as const)('of a request: $ms ms', async ({ timeout, ms }) => {
    const client = await world.client();
    cutOff();
    for (const call of [
      () => client.kv.put('k', 'v', { timeout }), // It asks for the ranges' time before.
      () => client.kv.get('k', { timeout }),
    ]) {
      const times = (await message(call())).match(/-?[\d.]+ ?(ms|s)\b/g) ?? [];
      expect(times.filter((time) => time !== `${ms} ms`)).toEqual([]);
    }
  });

  test('of a first request whose gateways are gone', async () => {
    const client = await world.client({ requestTimeout: '2s' });
    for (const address of GATEWAYS) world.down.add(address);
    world.sever();
    expect(await message(client.kv.put('k', 'v'))).toMatch(/^no answer within 2000 ms: /);
  });

  test('of a session that did not come within the wait of an acquire', async () => {
    const client = await world.client();
    cutOff();
    expect(await message(client.lock('l').acquire({ wait }))).toContain('within 500 ms');
  });
});

test('a short wait takes a lock that is free, once there is a session', async () => {
  const client = await world.client();
  const held: HeldLock = await world.until(client.lock('l').acquire({ wait: 20 }));
  expect(held.state).toBe('active');
});
