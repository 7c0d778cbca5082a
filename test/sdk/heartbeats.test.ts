import type { AcquireOptions } from 'remora';
import { describe, expect, test } from 'vitest';
import { World } from '../support/sdk-world.ts';

const GATEWAYS = ['a:1', 'b:1', 'c:1'];

type Failing = 'stalled' | 'cut off';

/** The first `count` of the gateways that the client would turn to are there, and are of no use from now on. */
function fail(world: World, count: number, how: Failing): void {
  const current = GATEWAYS.indexOf(world.links.at(-1)?.address ?? '');
  const failing = new Set([...GATEWAYS.slice(current), ...GATEWAYS.slice(0, current)].slice(0, count));
  if (how === 'cut off') {
    for (const gateway of failing) world.isolated.add(gateway);
    return;
  }
  for (const { address, pair } of world.links) if (failing.has(address)) pair.stall(true);
  const connect = world.connect.bind(world);
  world.connect = (address) => {
    const link = connect(address);
    if (failing.has(address)) world.links.at(-1)?.pair.stall(true);
    return link;
  };
}

const quick = { heartbeat: '1s', serverMisses: 3 } as const;

describe('a lock stays held while one gateway of three can do its work', () => {
  test.each<{ readonly failing: number; readonly how: Failing; readonly options: AcquireOptions }>([
    { failing: 1, how: 'stalled', options: {} },
    { failing: 2, how: 'stalled', options: {} },
    { failing: 1, how: 'cut off', options: {} },
    { failing: 2, how: 'cut off', options: {} },
    { failing: 1, how: 'stalled', options: { condition: quick } },
    { failing: 1, how: 'cut off', options: { condition: quick } },
    { failing: 1, how: 'cut off', options: { condition: { heartbeat: '2s', serverMisses: 3 } } },
    { failing: 2, how: 'stalled', options: { ttl: '3s' } },
    { failing: 2, how: 'cut off', options: { ttl: '3s' } },
  ])('$failing of them $how: $options', async ({ failing, how, options }) => {
    const world = new World();
    const client = await world.client({ endpoints: GATEWAYS });
    const held = await world.until(client.lock('a').acquire(options));
    const { signal } = held;
    fail(world, failing, how);
    await world.run(30_000);
    expect([signal.aborted, held.state]).toEqual([false, 'active']);
  });
});

test.each([1, 2, 3])(
  'a lock whose heartbeats are not answered by any of %i gateways is suspended before it is lost',
  async (count) => {
    const world = new World();
    const endpoints = GATEWAYS.slice(0, count);
    const client = await world.client({ endpoints });
    const held = await world.until(client.lock('a').acquire());
    for (const gateway of endpoints) world.isolated.add(gateway);
    const seen = new Set<string>();
    for (let passed = 0; passed < 10_000; passed += 100) {
      await world.run(100);
      seen.add(held.state);
    }
    expect([...seen]).toEqual(['active', 'suspended', 'lost']);
  },
);

test('a heartbeat that is answered late counts, though others were asked besides', async () => {
  const world = new World();
  const client = await world.client({ endpoints: GATEWAYS });
  const held = await world.until(client.lock('a').acquire());
  const { backend } = world;
  const ask = backend.query.bind(backend);
  backend.query = (query, options, done) => {
    const timer = world.clock.setTimer(2_000, () => ask(query, options, done)); // all of them are slow
    return () => timer.cancel();
  };
  await world.run(60_000);
  expect(held.state).toBe('active');
});

test('what is left of a lock counts the time for which the machine was suspended (S2)', async () => {
  const world = new World();
  const { clock } = world;
  let suspendedMs = 0;
  const own = {
    wallMs: () => clock.wallMs() + suspendedMs,
    monotonicMs: () => clock.monotonicMs(),
    setTimer: clock.setTimer.bind(clock),
    setImmediate: clock.setImmediate.bind(clock),
  };
  const client = await world.client({}, 1, { clock: own });
  const held = await world.until(client.lock('a').acquire());
  world.stall(true);
  const before = held.remainingMs;
  suspendedMs = 6_000;
  expect([before > 8_000, held.remainingMs, held.state]).toEqual([true, before - 6_000, 'active']);
});
