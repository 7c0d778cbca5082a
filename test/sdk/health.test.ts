import type { HealthCheck } from 'remora';
import { expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

async function checked(health: HealthCheck) {
  const world = new World();
  const client = await world.client();
  const session = await world.until(client.session({ ttl: '30s', health }));
  const held = await world.until(session.lock('l').acquire());
  const own = await world.until(session.lock('own').acquire({ ttl: '60s' }));
  return { world, client, session, held, own };
}

test('a session whose health check fails some times in a row is lost, and its locks are free at once', async () => {
  const answers = [true, false, false, true, false, false, false];
  const health = { check: () => answers.shift(), interval: '1s', failures: 3 } as const;
  const { world, client, session, held, own } = await checked(health);
  await world.run(6_500);
  expect([held.state, answers.length]).toEqual(['active', 1]);
  await world.run(600);
  expect([session.state, held.state, own.state]).toEqual(['lost', 'lost', 'lost']);
  expect(String(held.signal.reason)).toMatch(/health check failed 3 times/);
  expect(await world.until(client.lock('l').tryAcquire())).toBeDefined();
  expect(await world.until(client.lock('own').tryAcquire())).toBeDefined();
  await world.until(client.close());
  await world.run(1_000);
  expect([world.backend.expired, world.clock.pendingTimers]).toEqual([[], 0]);
});

test.each([
  { what: 'throws', check: () => Promise.reject(new Error('no database')), says: /no database/ },
  { what: 'takes too long', check: () => new Promise(() => {}), says: /longer than 500 ms/ },
])('a health check that $what has failed', async ({ check, says }) => {
  const health: HealthCheck = { check, interval: '1s', timeout: 500, failures: 1 };
  const { world, session } = await checked(health);
  await world.run(1_600);
  expect(session.state).toBe('lost');
  expect(String(session.signal.reason)).toMatch(says);
});

test('a health check is told when nobody waits for it: it took too long, or the session is closed', async () => {
  const signals: AbortSignal[] = [];
  const check = (signal: AbortSignal) => {
    signals.push(signal);
    return new Promise(() => {});
  };
  const { world, client, session } = await checked({ check, interval: '1s', timeout: '2s' });
  await world.run(3_100);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  await world.run(1_000);
  await world.until(session.close());
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  await world.until(client.close());
  await world.run(1_000);
  expect(world.clock.pendingTimers).toBe(0);
});

test('a health check without any time is refused before a session is opened', async () => {
  const world = new World();
  const client = await world.client();
  for (const wrong of [{ interval: 0 }, { timeout: 0 }, { failures: 0 }, { failures: 1.5 }]) {
    const opening = client.session({ health: { check: () => true, ...wrong } });
    expect(await world.until(codeOf(opening))).toBe('INVALID_ARGUMENT');
  }
  expect(world.backend.seen).toEqual([]);
});
