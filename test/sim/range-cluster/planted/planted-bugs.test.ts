import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { plantedRun, type RunSeed } from '../../common/planted/inline-runs.ts';
import type { PlantedBug } from '../../common/planted/planted-bug.ts';
import { MERGE_BUGS } from './bugs.ts';

const RUN = fileURLToPath(new URL('../merge-run.ts', import.meta.url));
/** A change anywhere makes other runs of the same seeds: where the row's does not find the bug any more, others may. */
const OTHER_SEEDS = 40;

async function firstSeed(run: RunSeed, { seed, properties }: PlantedBug): Promise<number | undefined> {
  const others = Array.from({ length: OTHER_SEEDS }, (_, i) => i + 1).filter((other) => other !== seed);
  for (const one of [seed, ...others]) {
    const { faults } = await run(one);
    if (faults.some((fault) => properties.some((property) => fault.includes(property)))) return one;
  }
  return undefined;
}

test.each(MERGE_BUGS)('the simulation of merges finds $name', { timeout: 240_000 }, async (bug) => {
  const seed = await firstSeed(await plantedRun(bug, RUN), bug);
  expect(seed, 'no seed finds it any more').toBeDefined();
  if (seed !== bug.seed) console.warn(`${bug.name} is found by seed ${seed}: write that into its row`);
});
