/** Runs of given seeds as tests: a few in `npm test`, the others in `npm run test:long`. */
import { setFlagsFromString } from 'node:v8';
import { beforeAll, describe, expect, test } from 'vitest';
import type { FaultEvent } from '../../common/faults/fault.ts';
import { CHECKED, type RunResult, runSeed } from '../run.ts';

/**
 * A run that once found a fault, in the product or in the simulation; it stays, and runs with every `npm run
 * test:long`.
 */
export interface Regression {
  readonly seed: number;
  readonly found: string;
  /** Replaces the drawn faults, if other runs of the seed no longer show it. */
  readonly schedule?: readonly FaultEvent[];
}

/** A guard against hangs; a run takes about ten seconds. */
const RUN_TIMEOUT_MS = 900_000;

/** Declares a test for each seed of a part, and one for all of them together. */
export function runsOf(part: { readonly first: number; readonly last: number }): void {
  const { first, last } = part;
  const results: RunResult[] = [];
  beforeAll(() => setFlagsFromString('--always-sparkplug')); // as built simulations do (common/cli/load.mjs)

  describe(`a cluster under load and misfortune keeps every promise, seeds ${first} to ${last}`, () => {
    test.each(Array.from({ length: last - first + 1 }, (_, i) => first + i))(
      'seed %i',
      { timeout: RUN_TIMEOUT_MS },
      async (seed) => {
        const result = await runSeed(seed);
        results.push(result);
        expect(report(result)).toBe('');
      },
    );

    test('operations ended in every way, and groups changed their leaders', () => {
      for (const how of ['done', 'refused', 'unknown'] as const) {
        expect(results.reduce((sum, { counts }) => sum + counts[how], 0)).toBeGreaterThan(0);
      }
      expect(results.reduce((sum, { figures }) => sum + (figures.elections ?? 0), 0)).toBeGreaterThan(results.length);
    });

    test('every check had something to look at in every run', () => {
      const idle = results.filter(({ figures }) => CHECKED.some((name) => (figures[name] ?? 0) === 0));
      expect(idle.map(({ seed }) => seed)).toEqual([]);
    });
  });
}

/** Declares a test for each run that once found a fault. */
export function runsAgain(regressions: readonly Regression[]): void {
  test.each(regressions)('seed $seed: $found', { timeout: RUN_TIMEOUT_MS }, async ({ seed, schedule }) => {
    const result = await runSeed(seed, schedule === undefined ? {} : { schedule });
    expect(report(result)).toBe('');
  });
}

/** Empty when the run passed. */
function report({ seed, failure }: RunResult): string {
  return failure === undefined ? '' : `${failure.detail}\n${failure.last.join('\n')}\npnpm sim --seed ${seed}`;
}
