import { describe, expect, test } from 'vitest';
import { type RunResult, runSeed } from './run.ts';
import { FAULTS } from './schedule.ts';
import { SEEDS_IN_TEST } from './seeds.ts';

/** Runs that once found something, in the product or in the simulation; they stay, and run first. */
const REGRESSIONS: readonly number[] = [142, 238, 124, 199];
const PER_TEST = 20;

const results: RunResult[] = [];

function report({ seed, failure }: RunResult): string {
  return failure === undefined ? '' : `${failure.detail}\n${failure.last.join('\n')}\npnpm sim:raft --seed ${seed}`;
}

async function runAll(seeds: readonly number[]): Promise<void> {
  for (const seed of seeds) {
    const result = await runSeed(seed);
    results.push(result);
    expect(report(result)).toBe('');
  }
}

describe('groups of replicas under load and misfortune keep every promise', () => {
  test('in the runs that once found something', { timeout: 60_000 }, () => runAll(REGRESSIONS));

  test.each(Array.from({ length: SEEDS_IN_TEST / PER_TEST }, (_, i) => 1 + i * PER_TEST))(
    'from seed %i on',
    { timeout: 60_000 },
    (first) => runAll(Array.from({ length: PER_TEST }, (_, i) => first + i)),
  );

  test('the runs met every kind of fault, and every outcome of an operation', () => {
    const fired = new Set(results.flatMap((result) => [...result.fired.keys()]));
    expect(FAULTS.map((fault) => fault.kind).filter((kind) => !fired.has(kind))).toEqual([]);
    for (const outcome of ['acknowledged', 'lost', 'refused', 'unknown', 'reads', 'leaseReads'] as const) {
      expect(results.reduce((sum, { counts }) => sum + counts[outcome], 0)).toBeGreaterThan(0);
    }
  });
});

test('the same seed gives the same run, event by event', { timeout: 60_000 }, async () => {
  for (const seed of [3, 17, 51]) {
    const [first, second] = [await runSeed(seed), await runSeed(seed)];
    expect(second.hash).toBe(first.hash);
    expect(second.steps).toBe(first.steps);
  }
});
