import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { TRANSACTION_BUGS } from './planted/bugs.ts';
import { type RunResult, runSeed } from './run.ts';

/** Runs that show what is planted (planted/bugs.ts) must pass without it. */
const SHARP = TRANSACTION_BUGS.map(({ seed }) => seed);
/** `SIM_SEED=17 npx vitest run --project unit test/sim/transactions` replays one run; `SIM_SEEDS=1000` runs more. */
const { seeds, single } = seedsToRun(6, SHARP);

const results: RunResult[] = [];

describe('transactions over ranges keep what is promised of them', () => {
  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed);
    results.push(result);
    expect(result.faults.slice(0, 5)).toEqual([]);
  });

  test.runIf(!single)('the runs met what they are for', () => {
    const total = (what: 'commits' | 'conflicts' | 'deaths' | 'snapshots' | 'remembered'): number =>
      results.reduce((sum, result) => sum + result[what], 0);
    for (const what of ['commits', 'conflicts', 'deaths', 'snapshots'] as const) {
      expect(total(what), what).toBeGreaterThan(seeds.length);
    }
    expect(total('remembered')).toBeGreaterThan(0);
  });
});
