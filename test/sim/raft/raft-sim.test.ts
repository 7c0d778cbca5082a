import { expect, test } from 'vitest';
import { keepPromises } from './keep-promises.ts';
import { runSeed } from './run.ts';
import { SEEDS_IN_SHORT } from './seeds.ts';

/** Runs that once found something, in the product or in the simulation; they stay, and run first. */
const REGRESSIONS: readonly number[] = [142, 238, 124, 199];

test('groups of replicas keep every promise in the runs that once found something', { timeout: 240_000 }, () =>
  keepPromises(REGRESSIONS),
);

test(`groups of replicas keep every promise, seeds 1 to ${SEEDS_IN_SHORT}`, { timeout: 240_000 }, () =>
  keepPromises(Array.from({ length: SEEDS_IN_SHORT }, (_, i) => 1 + i)),
);

test('the same seed gives the same run, event by event', { timeout: 240_000 }, async () => {
  for (const seed of [3, 17, 51]) {
    const [first, second] = [await runSeed(seed), await runSeed(seed)];
    expect(second.hash).toBe(first.hash);
    expect(second.steps).toBe(first.steps);
  }
});
