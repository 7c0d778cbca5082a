import { describe, expect, test } from 'vitest';
import { type RunResult, runSeed } from './run.ts';

/** Leases and locks are in the first, and each of the others has a part of the plain keys. */
const BORDERS = ['k1', 'k3'];

/** `SIM_SEED=17 npx vitest run test/sim/range-cluster/many` replays one run; `SIM_SEEDS=1000` runs more. */
const one = process.env.SIM_SEED;
const count = Number(process.env.SIM_SEEDS ?? 6);
const seeds = one === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(one)];

const results: RunResult[] = [];

describe('a cluster of several ranges under load and misfortune keeps every promise', () => {
  test.each(seeds)('seed %i', { timeout: 60_000 }, async (seed) => {
    const result = await runSeed(seed, BORDERS);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.events).toBeGreaterThan(5);
    expect(result.acknowledged).toBeGreaterThan(10);
  });

  test.runIf(seeds.length >= 5)(
    'the runs met what they are for: lost answers, and grants in a range among others',
    () => {
      const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
      expect(sum((result) => result.granted)).toBeGreaterThan(0);
      expect(sum((result) => result.unknown)).toBeGreaterThan(0);
    },
  );
});
