import type { RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const GIVEN = 'a:1';
const OTHERS = ['b:1', 'c:1'];
/** A moment after the client has tried the gateways that it was told of. */
const TRIED_MS = 4_000;

let world: World;
beforeEach(() => {
  world = new World();
  world.advertised = OTHERS;
});

/** A client that was given one endpoint. */
function client(options: Parameters<World['client']>[0] = {}): Promise<RemoraClient> {
  return world.client({ endpoints: GIVEN, ...options });
}

/** How long a write takes. */
async function putMs(remora: RemoraClient): Promise<number> {
  const beganMs = world.clock.monotonicMs();
  await world.until(remora.kv.put('k', 'v'));
  return world.clock.monotonicMs() - beganMs;
}

const tried = (): ReadonlySet<string> => new Set(world.links.map(({ address }) => address));

describe('a client that was given one endpoint', () => {
  test('goes on at another gateway when that one stands still, requests, watches and sessions alike', async () => {
    const remora = await client();
    const held = await world.until(remora.lock('l').acquire());
    const { signal } = held;
    const seen: string[] = [];
    const watch = remora.kv.watch('w');
    void (async () => {
      for await (const event of watch) seen.push(String(event.kv.value));
    })();
    await world.run(TRIED_MS);
    world.freeze(GIVEN);
    expect(await putMs(remora)).toBeLessThan(2_000);
    await world.run(30_000);
    await world.until(remora.kv.put('w', 'told'));
    await world.run(1_000);
    expect([signal.aborted, held.state, seen]).toEqual([false, 'active', ['told']]);
  });

  test.each(['stands still', 'is gone'])('goes on at another gateway when that one %s at once', async (how) => {
    const remora = await client();
    const held = await world.until(remora.lock('l').acquire());
    if (how === 'stands still') world.freeze(GIVEN);
    else {
      world.down.add(GIVEN);
      world.sever();
    }
    expect(await putMs(remora)).toBeLessThan(1_000);
    await world.run(30_000);
    expect(held.state).toBe('active');
  });

  test('keeps its locks when that one is cut off from the ranges', async () => {
    const remora = await client();
    const held = await world.until(remora.lock('l').acquire());
    await world.run(TRIED_MS);
    world.isolated.add(GIVEN);
    await world.run(30_000);
    expect(held.state).toBe('active');
  });

  test('finds a gateway that has come later', async () => {
    world.advertised = [GIVEN];
    const remora = await client();
    world.advertised = OTHERS;
    await world.run(80_000);
    world.freeze(GIVEN);
    expect(await putMs(remora)).toBeLessThan(2_000);
  });

  test('stays with it unless it may look for others', async () => {
    const remora = await client({ discover: false, requestTimeout: '2s' });
    const held = await world.until(remora.lock('l').acquire());
    await world.run(TRIED_MS);
    world.freeze(GIVEN);
    expect(await codeOf(world.until(remora.kv.put('k', 'v')))).toBe('UNKNOWN_OUTCOME');
    await world.run(30_000);
    expect([held.state, [...tried()]]).toEqual(['lost', [GIVEN]]);
  });

  test('comes back to it when what it has found fails', async () => {
    world.advertised = ['b:1'];
    const remora = await client();
    await world.run(TRIED_MS);
    world.freeze(GIVEN);
    await putMs(remora);
    world.thaw(GIVEN);
    world.freeze('b:1');
    expect(await putMs(remora)).toBeLessThan(3_000);
  });
});

describe('addresses that a gateway advertises', () => {
  test('and that lead nowhere from here cost requests nothing, and are tried now and then only', async () => {
    for (const address of OTHERS) world.unreachable.add(address);
    const remora = await client();
    const held = await world.until(remora.lock('l').acquire());
    await world.run(TRIED_MS);
    for (let i = 0; i < 3; i++) {
      expect(await putMs(remora)).toBeLessThanOrEqual(10);
      const put = putMs(remora);
      world.sever();
      expect(await put).toBeLessThanOrEqual(100);
    }
    const before = world.unreachableTries.length;
    await world.run(600_000);
    expect(held.state).toBe('active');
    expect(world.unreachableTries.length - before).toBeLessThanOrEqual(2 * 10);
  });

  test('are not used where another cluster answers', async () => {
    for (const address of OTHERS) world.foreign.add(address);
    const remora = await client({ requestTimeout: '2s' });
    await world.run(TRIED_MS);
    world.down.add(GIVEN);
    world.sever();
    expect(await codeOf(world.until(remora.kv.put('k', 'v')))).toBe('DEADLINE_EXCEEDED');
    world.down.delete(GIVEN);
    await world.run(2_000);
    expect(await codeOf(world.until(remora.kv.put('k', 'v')))).toBe('ok');
  });

  test('are not used any more where another cluster answers since', async () => {
    const remora = await client();
    await world.run(TRIED_MS);
    for (const address of OTHERS) world.foreign.add(address);
    world.freeze(GIVEN);
    const put = remora.kv.put('k', 'v');
    await world.run(5_000);
    world.thaw(GIVEN);
    expect(await codeOf(world.until(put))).toBe('ok');
  });

  test('are tried up to a bound, however many there are', async () => {
    world.advertised = Array.from({ length: 60 }, (_, i) => `g${i}:1`);
    await client();
    await world.run(600_000);
    expect(tried().size).toBe(1 + 5);
  });

  test.each([
    { given: GIVEN, address: '127.0.0.1:7480', isTried: false },
    { given: GIVEN, address: 'localhost:7480', isTried: false },
    { given: GIVEN, address: '[::1]:7480', isTried: false },
    { given: '127.0.0.1:1', address: '127.0.0.1:7480', isTried: true },
    { given: '127.0.0.1:1', address: '0.0.0.0:7480', isTried: false },
    { given: GIVEN, address: '[::]:7480', isTried: false },
    { given: GIVEN, address: 'no address', isTried: false },
    { given: GIVEN, address: '10.0.0.1:7480', isTried: true },
  ])('$address of a client that was given $given: tried $isTried', async ({ given, address, isTried }) => {
    world.advertised = [address];
    await client({ endpoints: given });
    await world.run(TRIED_MS);
    expect(tried().has(address)).toBe(isTried);
  });
});

test('clients that come and go at once find nobody, and open no connection for it', async () => {
  const remora = await client();
  await world.until(remora.kv.put('k', 'v'));
  await world.until(remora.close());
  await world.run(TRIED_MS);
  expect([...tried()]).toEqual([GIVEN]);
});
