import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { firstSeed, plantedRun } from '../../common/planted/inline-runs.ts';
import { KINDS_BUGS } from './kinds-bugs.ts';

const RUN = fileURLToPath(new URL('../kinds-run.ts', import.meta.url));

test.each(KINDS_BUGS)('the simulation of locks of all kinds finds $name', { timeout: 240_000 }, async (bug) => {
  const seed = await firstSeed(await plantedRun(bug, RUN), bug);
  expect(seed, 'no seed finds it any more').toBeDefined();
  if (seed !== bug.seed) console.warn(`${bug.name} is found by seed ${seed}: write that into its row`);
});
