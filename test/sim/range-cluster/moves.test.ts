import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { MOVES } from './plans.ts';
import { type RunResult, runSeed } from './run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project unit test/sim/range-cluster/moves` replays one run; `SIM_SEEDS=1000` runs more.
 */
const { seeds } = seedsToRun(4);

describe.each(MOVES)('$name, under load and misfortune, keep every promise', ({ plan }) => {
  const results: RunResult[] = [];

  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed, plan);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.acknowledged).toBeGreaterThan(10);
  });

  test.runIf(seeds.length >= 4)('the runs met what they are for: moves, splits and merges', () => {
    const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
    expect(sum(({ moves }) => moves)).toBeGreaterThan(seeds.length);
    expect(sum(({ splits }) => splits)).toBeGreaterThan(seeds.length);
    expect(sum(({ merges }) => merges)).toBeGreaterThan(0);
  });
});
