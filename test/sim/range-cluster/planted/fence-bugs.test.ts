import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { firstSeed, plantedRun } from '../../common/planted/inline-runs.ts';
import { FENCE_BUGS } from './fence-bugs.ts';

const RUN = fileURLToPath(new URL('../fence-run.ts', import.meta.url));

test.each(FENCE_BUGS)('the simulation of writes under locks finds $name', { timeout: 240_000 }, async (bug) => {
  const seed = await firstSeed(await plantedRun(bug, RUN), bug);
  expect(seed, 'no seed finds it any more').toBeDefined();
  if (seed !== bug.seed) console.warn(`${bug.name} is found by seed ${seed}: write that into its row`);
});
