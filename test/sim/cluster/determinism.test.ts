import { expect, test } from 'vitest';
import { runSeed } from './run.ts';

const RUN_MS = 20_000;

test('the same seed gives the same run, byte for byte', async () => {
  const [first, second] = [await runSeed(2, { runMs: RUN_MS }), await runSeed(2, { runMs: RUN_MS })];
  expect(second.hash).toBe(first.hash);
  expect(second.steps).toBe(first.steps);
});
