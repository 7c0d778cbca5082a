import { describe, expect, test } from 'vitest';
import type { RangePlan } from './bed.ts';
import { type RunResult, runSeed } from './run.ts';

const PLANS: readonly { readonly name: string; readonly plan: RangePlan }[] = [
  {
    name: 'locks and keys away from their leases',
    plan: { borders: ['lock:lock0', 'lock:lock1', 'k1', 'k3'], splits: [], leases: true },
  },
  {
    name: 'ranges that are parted from their leases, and merged with them',
    plan: {
      borders: ['leases', 'k1', 'k3'],
      splits: ['leases', 'lock:lock1', 'k0', 'k1', 'k2', 'k3'],
      ...{ merges: 60, leases: true },
    },
  },
];

/** `SIM_SEED=17 npx vitest run test/sim/range-cluster/leases` replays one run; `SIM_SEEDS=1000` runs more. */
const one = process.env.SIM_SEED;
const count = Number(process.env.SIM_SEEDS ?? 5);
const seeds = one === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(one)];

describe.each(PLANS)('$name, under load and misfortune, keep every promise', ({ plan }) => {
  const results: RunResult[] = [];

  test.each(seeds)('seed %i', { timeout: 60_000 }, async (seed) => {
    const result = await runSeed(seed, plan);
    results.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
  });

  test.runIf(seeds.length >= 5)('the runs met what they are for: keys of leases, revocations, grants', () => {
    const sum = (what: (result: RunResult) => number) => results.reduce((total, result) => total + what(result), 0);
    expect(sum((result) => result.attached)).toBeGreaterThan(10 * seeds.length);
    expect(sum((result) => result.revoked)).toBeGreaterThan(seeds.length);
    expect(sum((result) => result.granted)).toBeGreaterThan(seeds.length);
    expect(sum((result) => result.merges)).toBeGreaterThanOrEqual(plan.merges === undefined ? 0 : seeds.length);
  });
});
