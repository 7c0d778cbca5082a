import fc from 'fast-check';
import type { LockChoice, RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const NAMES = ['a', 'b', 'c', 'd'];
const CAPACITY = 3;

/** What one name is asked for: shares are counted, so that everybody can be checked against everybody else. */
type Ask = { readonly name: string; readonly how: 'alone' | 'shared' };

const choices = fc.uniqueArray(
  fc.record({ name: fc.constantFrom(...NAMES), how: fc.constantFrom<Ask['how']>('alone', 'shared') }),
  { minLength: 1, maxLength: NAMES.length, selector: ({ name }) => name },
);
/** Most are patient: who gives up soon would hide that two wait for one another. */
const seldom = (arbitrary: fc.Arbitrary<number>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const turn = fc.record({
  locks: choices,
  permits: fc.integer({ min: 0, max: CAPACITY }),
  startMs: fc.integer({ min: 0, max: 20 }),
  holdMs: fc.integer({ min: 0, max: 60 }),
  waitMs: seldom(fc.integer({ min: 0, max: 150 })),
  abortMs: seldom(fc.integer({ min: 0, max: 150 })),
});
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

/** Of two that cross, each would have what the other one needs, if they acquired in the order of asking. */
function crossing(...names: readonly string[]): Turn {
  const locks = names.map((name) => ({ name, how: 'alone' as const }));
  return { locks, permits: 0, startMs: 0, holdMs: 20, waitMs: undefined, abortMs: undefined };
}

/** Who holds what at the moment, by what the clients believe. */
class Believed {
  readonly #alone = new Map<string, number>();
  readonly #shared = new Map<string, number>();
  #permits = 0;

  change({ locks, permits }: Turn, by: 1 | -1): void {
    for (const { name, how } of locks) {
      const counts = how === 'alone' ? this.#alone : this.#shared;
      counts.set(name, (counts.get(name) ?? 0) + by);
      const [alone, shared] = [this.#alone.get(name) ?? 0, this.#shared.get(name) ?? 0];
      expect(alone === 0 || (alone === 1 && shared === 0)).toBe(true);
    }
    this.#permits += by * permits;
    expect(this.#permits).toBeLessThanOrEqual(CAPACITY);
  }
}

async function take(world: World, client: RemoraClient, turn: Turn, believed: Believed): Promise<string> {
  const { locks, permits, startMs, holdMs, waitMs, abortMs } = turn;
  const after = (ms: number): Promise<void> => new Promise((resolve) => void world.clock.setTimer(ms, resolve));
  await after(startMs);
  const wanted: LockChoice[] = locks.map(({ name, how }) => ({ lock: name, shared: how === 'shared' }));
  if (permits > 0) wanted.push({ semaphore: 'permits', capacity: CAPACITY, permits });
  const controller = new AbortController();
  if (abortMs !== undefined) world.clock.setTimer(abortMs, () => controller.abort());
  const options = { signal: controller.signal, ...(waitMs === undefined ? {} : { wait: waitMs }) };
  return codeOf(
    client.lockAll(wanted).run(options, async () => {
      believed.change(turn, 1);
      await after(holdMs);
      believed.change(turn, -1);
    }),
  );
}

test('sets of locks taken by many clients at once never wait for one another for ever, and leave nothing', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(turn, { minLength: 1, maxLength: 2 }), { minLength: 2, maxLength: 4 }),
      async (plan) => {
        const world = new World();
        const believed = new Believed();
        const clients: RemoraClient[] = [];
        for (const _ of plan) clients.push(await world.client());
        const ends = clients.flatMap((client, i) => (plan[i] ?? []).map((turn) => take(world, client, turn, believed)));
        // Nobody dies, so whoever does not give up has everything within all the others' time.
        const codes = await world.until(Promise.all(ends), 8 * 100 + 2_000);
        // A wait may end before there is a session, which says nothing of the locks: DEADLINE_EXCEEDED.
        const ended = ['ok', 'LOCK_TIMEOUT', 'LOCK_BUSY', 'CANCELED', 'DEADLINE_EXCEEDED'];
        for (const code of codes) expect(ended).toContain(code);
        await world.run(50);
        const client = await world.client();
        expect(await world.until(client.locks.list().toArray())).toEqual([]);
      },
    ),
    { numRuns: 15, examples: [[[[crossing('a', 'b')], [crossing('b', 'a')]]]] },
  );
});
