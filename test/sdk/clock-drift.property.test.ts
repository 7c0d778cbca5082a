// The client knows first (session.ts, S1), however the clocks of both sides drift within what is assumed of any.
import { CLOCK_DRIFT_PERCENT } from '@remora/base';
import { validityMs } from '@remora/lock';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

const DRIFT = CLOCK_DRIFT_PERCENT / 100;
const rate = fc.oneof(
  fc.constantFrom(1 - DRIFT, 1, 1 + DRIFT),
  fc.double({ min: 1 - DRIFT, max: 1 + DRIFT, noNaN: true }),
);

test('a session ends at the client in less true time than at any server, by what is left for late timers', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9_000_000_000_000 }), rate, rate, (ttlMs, client, server) => {
      const lateMs = Math.min(50, ttlMs / 10);
      expect((validityMs(ttlMs) + lateMs) / client).toBeLessThanOrEqual(ttlMs / server);
    }),
    { examples: [1, 500, 10_000, 9e12].map((ttlMs) => [ttlMs, 1 - DRIFT, 1 + DRIFT]) },
  );
});

test('whenever a client is cut off, its locks are lost to it before the cluster ends its session', async () => {
  const run = fc.record({
    ttlMs: fc.integer({ min: 300, max: 6_000 }),
    client: rate,
    server: rate,
    connectedMs: fc.integer({ min: 0, max: 5_000 }),
  });
  await fc.assert(
    fc.asyncProperty(run, async ({ ttlMs, client: clientRate, server: serverRate, connectedMs }) => {
      const world = new World({ serverRate });
      const client = await world.client({ sessionTtl: ttlMs }, clientRate);
      const held = await world.until(client.lock('l').acquire());
      let lostMs = Number.POSITIVE_INFINITY;
      held.signal.addEventListener('abort', () => {
        lostMs = world.clock.monotonicMs();
      });
      await world.run(connectedMs);
      expect(held.state).toBe('active');
      for (const address of GATEWAYS) world.isolated.add(address);
      await world.run(ttlMs * 1.2);
      const [expired] = world.backend.expired;
      expect(lostMs).toBeLessThan((expired?.atMs ?? 0) / serverRate);
    }),
    { numRuns: 40, examples: [[{ ttlMs: 6_000, client: 1 - DRIFT, server: 1 + DRIFT, connectedMs: 2_000 }]] },
  );
});

/** What is done to a lock with a lease of its own, and how much time passes first. */
const step = fc.record({
  passMs: fc.integer({ min: 0, max: 1_500 }),
  heartbeat: fc.integer({ min: 50, max: 800 }),
  serverMisses: fc.integer({ min: 3, max: 12 }),
  does: fc.constantFrom('change', 'changeUnheard', 'renew', 'newLeader', 'nothing'),
});

test('whatever is changed of a lease, whether it is heard of or not, the lock is lost to its holder before the cluster frees it', async () => {
  const run = fc.record({ client: rate, server: rate, steps: fc.array(step, { maxLength: 6 }) });
  let unheard = 0;
  await fc.assert(
    fc.asyncProperty(run, async ({ client: clientRate, server: serverRate, steps }) => {
      const world = new World({ serverRate });
      const client = await world.client({ requestTimeout: 2_000 }, clientRate);
      const acquire = client.lock('l').acquire({ condition: { heartbeat: 300, serverMisses: 6 } });
      const held = await world.until(acquire);
      let lostMs = Number.POSITIVE_INFINITY;
      held.signal.addEventListener('abort', () => {
        lostMs = world.clock.monotonicMs();
      });
      for (const { passMs, does, ...condition } of steps) {
        await world.run(passMs);
        if (does === 'newLeader') world.backend.changeLeader();
        if (does === 'renew') await world.until(codeOf(held.extend()));
        if (does === 'change') await world.until(codeOf(held.setCondition(condition)));
        if (does !== 'changeUnheard') continue;
        world.backend.onApplied = ({ type }) => {
          if (type !== 'leaseChange') return;
          for (const address of GATEWAYS) world.isolated.add(address);
          world.sever();
          unheard++;
        };
        const changing = codeOf(held.setCondition(condition));
        await world.run(100);
        world.backend.changeLeader();
        await world.until(changing);
        break;
      }
      for (const address of GATEWAYS) world.isolated.add(address);
      await world.run(12_000);
      expect(lostMs).toBeLessThan((world.backend.expired[0]?.atMs ?? 0) / serverRate);
    }),
    {
      numRuns: 60,
      examples: [
        [{ client: 1, server: 1, steps: [{ passMs: 0, heartbeat: 50, serverMisses: 8, does: 'changeUnheard' }] }],
      ],
    },
  );
  expect(unheard).toBeGreaterThan(0);
});
