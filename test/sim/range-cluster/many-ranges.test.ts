import { describe, expect, test } from 'vitest';
import type { RangePlan } from './bed.ts';
import { type RunResult, runSeed } from './run.ts';

const PLANS: readonly { readonly name: string; readonly plan: RangePlan }[] = [
  // Leases and locks are in the first, and each of the others has a part of the plain keys.
  { name: 'several ranges', plan: { borders: ['k1', 'k3'], splits: [] } },
  { name: 'a range that is split again and again', plan: { borders: [], splits: ['k1', 'k2', 'k3'] } },
];

/** `SIM_SEED=17 npx vitest run test/sim/range-cluster/many` replays one run; `SIM_SEEDS=1000` runs more. */
const one = process.env.SIM_SEED;
const count = Number(process.env.SIM_SEEDS ?? 6);
const seeds = one === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(one)];

describe.each(PLANS)('$name, under load and misfortune, keep every promise', ({ plan }) => {
  const results: RunResult[] = [];

  test.each(seeds)('seed %i', { timeout: 60_000 }, async (seed) => {
    const result = await runSeed(seed, plan);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.events).toBeGreaterThan(5);
    expect(result.acknowledged).toBeGreaterThan(10);
  });

  test.runIf(seeds.length >= 5)('the runs met what they are for: lost answers, grants, splits', () => {
    const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
    expect(sum((result) => result.granted)).toBeGreaterThan(0);
    expect(sum((result) => result.unknown)).toBeGreaterThan(0);
    expect(sum((result) => result.splits)).toBeGreaterThanOrEqual(plan.splits.length);
  });
});
