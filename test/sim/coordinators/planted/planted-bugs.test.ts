import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { firstSeed, plantedRun } from '../../common/planted/inline-runs.ts';
import { runSeed } from '../run.ts';
import { COORDINATOR_BUGS } from './bugs.ts';

const RUN = fileURLToPath(new URL('../run.ts', import.meta.url));

test.each([1, 2, 3])('the simulation of coordinators finds nothing in what is there: seed %i', async (seed) => {
  expect((await runSeed(seed)).faults).toEqual([]);
});

test.each(COORDINATOR_BUGS)('the simulation of coordinators finds $name', { timeout: 120_000 }, async (bug) => {
  const seed = await firstSeed(await plantedRun(bug, RUN), bug);
  expect(seed, 'no seed finds it any more').toBeDefined();
  if (seed !== bug.seed) console.warn(`${bug.name} is found by seed ${seed}: write that into its row`);
});
