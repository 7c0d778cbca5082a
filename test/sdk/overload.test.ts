import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

/** A server that refuses asks for pauses of at least 100 ms. */
const ATTEMPTS_PER_SECOND_MAX = 10;

let world: World;
beforeEach(() => {
  world = new World();
});

function overLimit(on: boolean): void {
  for (const address of GATEWAYS) {
    if (on) world.overLimit.add(address);
    else world.overLimit.delete(address);
  }
}

describe('the SDK and gateways that are over their limit', () => {
  test('a request is refused for certain at its time-out, after few attempts', async () => {
    const client = await world.client({ requestTimeout: '3s' });
    overLimit(true);
    expect(await world.until(codeOf(client.kv.put('k', 'v')))).toBe('RESOURCE_EXHAUSTED');
    expect(world.refused).toBeGreaterThan(3);
    expect(world.refused).toBeLessThanOrEqual(3 * ATTEMPTS_PER_SECOND_MAX);
    overLimit(false);
    expect(await world.until(client.kv.get('k'))).toBeUndefined();
  });

  test('a request goes through once the load is less', async () => {
    const client = await world.client({ requestTimeout: '5s' });
    overLimit(true);
    const put = codeOf(client.kv.put('k', 'v'));
    await world.run(1_500);
    overLimit(false);
    expect(await world.until(put)).toBe('ok');
    expect((await world.until(client.kv.get('k')))?.version).toBe(1);
  });

  test('whoever waits for a lock goes on asking, and holds it in the end', async () => {
    const [first, second] = [await world.client(), await world.client({ requestTimeout: '1s' })];
    const held = await world.until(first.lock('l').acquire());
    await world.until(second.lock('another').acquire());
    overLimit(true);
    const waiting = second.lock('l').acquire();
    await world.run(5_000);
    overLimit(false);
    await world.until(held.release());
    expect((await world.until(waiting)).state).toBe('active');
  });

  // Cluster seed 71118: who was queued asked on under the same request id, and was told so for as long as a request may
  // take.
  test('whoever waits where too many do finds out by itself that its turn has come', async () => {
    const [first, second] = [await world.client(), await world.client({ requestTimeout: '60s' })];
    const held = await world.until(first.lock('l').acquire());
    world.backend.waitsFull = true;
    let state = 'waits';
    const waiting = second.lock('l').acquire();
    waiting.then((lock) => {
      state = lock.state;
    }, String);
    await world.run(3_000);
    expect(state).toBe('waits');
    await world.until(held.release());
    await world.run(3_000);
    expect(state).toBe('active');
  });

  test('a write of unknown outcome that is refused afterwards stays of unknown outcome', async () => {
    const client = await world.client({ requestTimeout: '4s' });
    await world.until(client.kv.put('k', 'before'));
    world.stall(true);
    const put = codeOf(client.kv.put('k', 'v'));
    await world.run(100); // before it tries another gateway, as this one is mute
    overLimit(true);
    world.sever();
    expect(await world.until(put)).toBe('UNKNOWN_OUTCOME');
  });
});
