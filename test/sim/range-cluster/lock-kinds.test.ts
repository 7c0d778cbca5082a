import { expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { type KindsResult, runSeed } from './kinds-run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project unit test/sim/range-cluster/lock-kinds` replays one run; `SIM_SEEDS=1000` runs
 * more.
 */
const { seeds } = seedsToRun(4);
const results: KindsResult[] = [];

test.each(seeds)('locks of all kinds keep every promise, under misfortune: seed %i', async (seed) => {
  const result = await runSeed(seed);
  results.push(result);
  expect(result.faults.slice(0, 10)).toEqual([]);
});

test.runIf(seeds.length >= 4)('the runs met what they are for', () => {
  const sums = new Map<string, number>();
  for (const { figures } of results)
    for (const [name, n] of Object.entries(figures)) sums.set(name, (sums.get(name) ?? 0) + n);
  expect([...sums].filter(([, sum]) => sum < seeds.length)).toEqual([]);
  expect(sums.get('granted')).toBeGreaterThan(10 * seeds.length);
});
