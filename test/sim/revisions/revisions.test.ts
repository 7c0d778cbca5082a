import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { REVISION_BUGS } from './planted/bugs.ts';
import { type RunResult, runSeed } from './run.ts';

/** Runs that show what is planted (planted/bugs.ts) must pass without it. */
const SHARP = REVISION_BUGS.map(({ seed }) => seed);
/** `SIM_SEED=17 npx vitest run --project unit test/sim/revisions` replays one run; `SIM_SEEDS=1000` runs more. */
const { seeds, single } = seedsToRun(8, SHARP);

const results: RunResult[] = [];

describe('revisions over ranges keep what is promised of them', () => {
  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
  });

  test.runIf(!single)('the runs met what they are for', () => {
    for (const what of ['changes', 'closings', 'reads', 'lostCalls', 'restarts'] as const) {
      expect(
        results.reduce((sum, result) => sum + result[what], 0),
        what,
      ).toBeGreaterThan(seeds.length);
    }
  });
});
