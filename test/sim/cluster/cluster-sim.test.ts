import { describe, expect, test } from 'vitest';
import { type RunResult, runSeed } from './run.ts';

/** `CLUSTER_SEED=17 npx vitest run test/sim/cluster` replays one run. */
const one = process.env.CLUSTER_SEED;
const SEEDS = one === undefined ? Array.from({ length: 8 }, (_, i) => i + 1) : [Number(one)];
const RUN_MS = 20_000;

function report({ seed, failure }: RunResult): string {
  return failure === undefined ? '' : `${failure.detail}\n${failure.last.join('\n')}\npnpm sim --seed ${seed}`;
}

describe('a cluster under load and misfortune keeps every promise', () => {
  test.each(SEEDS)('seed %i', { timeout: 60_000 }, async (seed) => {
    const result = await runSeed(seed, { runMs: RUN_MS });
    expect(report(result)).toBe('');
    expect(result.counts.done).toBeGreaterThan(0);
  });
});

test('the same seed gives the same run, byte for byte', { timeout: 60_000 }, async () => {
  const [first, second] = [await runSeed(2, { runMs: RUN_MS }), await runSeed(2, { runMs: RUN_MS })];
  expect(second.hash).toBe(first.hash);
  expect(second.steps).toBe(first.steps);
});
