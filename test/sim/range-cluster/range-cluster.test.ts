import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { type RunResult, runSeed } from './run.ts';

/** Runs that once found something, in the product or in the simulation; they stay. */
const REGRESSIONS = [443, 1503];
/** `SIM_SEED=17 npx vitest run --project unit test/sim/range-cluster` replays one run; `SIM_SEEDS=1000` runs more. */
const { seeds } = seedsToRun(12, REGRESSIONS);

const results: RunResult[] = [];

describe('a cluster under load and misfortune keeps every promise', () => {
  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.events).toBeGreaterThan(5);
    expect(result.acknowledged).toBeGreaterThan(10);
  });

  test.runIf(seeds.length >= 10)(
    'the runs met what they are for: grants, lost answers, snapshots, crashes amid them',
    () => {
      const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
      expect(sum((result) => result.granted)).toBeGreaterThan(0);
      expect(sum((result) => result.unknown)).toBeGreaterThan(0);
      expect(sum((result) => result.snapshots)).toBeGreaterThan(0);
      expect(sum((result) => result.resumed)).toBeGreaterThan(0);
    },
  );
});
