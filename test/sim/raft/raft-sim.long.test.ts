import { describe, expect, test } from 'vitest';
import { keepPromises } from './keep-promises.ts';
import type { RunResult } from './run.ts';
import { FAULTS } from './schedule.ts';
import { SEEDS_IN_SHORT, SEEDS_IN_TEST } from './seeds.ts';

const PER_TEST = 20;

describe('groups of replicas under load and misfortune keep every promise', () => {
  const results: RunResult[] = [];

  test.each(
    Array.from({ length: (SEEDS_IN_TEST - SEEDS_IN_SHORT) / PER_TEST }, (_, i) => SEEDS_IN_SHORT + 1 + i * PER_TEST),
  )('from seed %i on', { timeout: 240_000 }, async (first) => {
    results.push(...(await keepPromises(Array.from({ length: PER_TEST }, (_, i) => first + i))));
  });

  test('the runs met every kind of fault, and every outcome of an operation', () => {
    const fired = new Set(results.flatMap((result) => [...result.fired.keys()]));
    expect(FAULTS.map((fault) => fault.kind).filter((kind) => !fired.has(kind))).toEqual([]);
    for (const outcome of ['acknowledged', 'lost', 'refused', 'unknown', 'reads', 'leaseReads'] as const) {
      expect(results.reduce((sum, { counts }) => sum + counts[outcome], 0)).toBeGreaterThan(0);
    }
  });
});
