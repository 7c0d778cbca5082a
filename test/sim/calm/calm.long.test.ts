import { expect, test } from 'vitest';
import { PAUSE_MS_MAX, runSeed } from './run.ts';

const MINUTES = 5;

test.each([1, 2])('slow disks, pauses and a late network cause no election (seed %i)', async (seed) => {
  const { failure, fired, figures } = await runSeed(seed, { runMs: MINUTES * 60_000 });
  expect(failure?.detail).toBeUndefined();
  expect([...fired.keys()].sort()).toEqual(['late network', 'pause', 'slow disk']);
  expect(figures.elections).toBe(3);
});

test('pauses beyond the bound do, so the simulation would notice', async () => {
  const { failure } = await runSeed(1, { runMs: MINUTES * 60_000, pauseMsMax: 3 * PAUSE_MS_MAX });
  expect(failure?.property).toBe('no election without a cause');
});
