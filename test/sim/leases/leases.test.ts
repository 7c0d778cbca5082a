import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { LEASE_BUGS } from './planted/bugs.ts';
import { type RunResult, runSeed } from './run.ts';

/** Runs that show what is planted (planted/bugs.ts) must pass without it. */
const SHARP = LEASE_BUGS.map(({ seed }) => seed);
/** `SIM_SEED=17 npx vitest run --project unit test/sim/leases` replays one run; `SIM_SEEDS=1000` runs more. */
const { seeds, single } = seedsToRun(100, SHARP);

describe('leases over ranges keep what is promised of them', () => {
  const results: RunResult[] = [];

  test('in runs from many seeds', { timeout: 600_000 }, () => {
    for (const seed of seeds) {
      const result = runSeed(seed);
      results.push(result);
      expect(result.faults.slice(0, 10), `SIM_SEED=${seed}`).toEqual([]);
    }
  });

  test.runIf(!single)('the runs met what they are for', () => {
    const sumOf = (what: Exclude<keyof RunResult, 'faults'>) =>
      results.reduce((total, result) => total + result[what], 0);
    for (const what of ['taken', 'ends', 'apart', 'splits', 'merges', 'elections', 'lost', 'revoked'] as const) {
      expect(sumOf(what), what).toBeGreaterThan(seeds.length);
    }
    expect(sumOf('forgotten')).toBeGreaterThan(seeds.length / 8);
  });
});
