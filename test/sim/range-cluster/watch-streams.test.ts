import { expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { runSeed, type StreamResult } from './stream-run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project unit test/sim/range-cluster/watch-streams` replays one run; `SIM_SEEDS=1000`
 * runs more.
 */
const { seeds, single } = seedsToRun(3);
const results: StreamResult[] = [];

test.each(seeds)(
  'no event follows progress past it, while ranges split, move and merge, and leaders change: seed %i',
  async (seed) => {
    const result = await runSeed(seed);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
  },
);

test.runIf(!single)('the runs met what they are for', () => {
  const sums = new Map<string, number>();
  for (const { figures } of results)
    for (const [name, n] of Object.entries(figures)) sums.set(name, (sums.get(name) ?? 0) + n);
  expect([...sums].filter(([, sum]) => sum < 1)).toEqual([]);
  expect(sums.get('pairs')).toBeGreaterThan(50 * seeds.length);
  expect(sums.get('answers')).toBeGreaterThan(10 * seeds.length);
});
