import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { LEASES } from './plans.ts';
import { type RunResult, runSeed } from './run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project unit test/sim/range-cluster/leases` replays one run; `SIM_SEEDS=1000` runs
 * more.
 */
const { seeds } = seedsToRun(5);

describe.each(LEASES)('$name, under load and misfortune, keep every promise', ({ plan }) => {
  const results: RunResult[] = [];

  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed, plan);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
  });

  test.runIf(seeds.length >= 5)('the runs met what they are for: keys of leases, revocations, grants', () => {
    const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
    expect(sum((result) => result.attached)).toBeGreaterThan(10 * seeds.length);
    expect(sum((result) => result.revoked)).toBeGreaterThan(seeds.length);
    expect(sum((result) => result.kept)).toBeGreaterThan(seeds.length);
    expect(sum((result) => result.granted)).toBeGreaterThan(seeds.length);
    expect(sum((result) => result.merges)).toBeGreaterThanOrEqual(plan.merges === undefined ? 0 : seeds.length);
  });
});
