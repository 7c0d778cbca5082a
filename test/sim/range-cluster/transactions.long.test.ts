import { describe, expect, test } from 'vitest';
import { seedsToRun } from '../common/seeds.ts';
import { TRANSACTIONS } from './plans.ts';
import { type RunResult, runSeed } from './run.ts';

/**
 * `SIM_SEED=17 npx vitest run --project long test/sim/range-cluster/transactions` replays one run; `SIM_SEEDS=1000`
 * runs more.
 */
const { seeds } = seedsToRun(4);

const all: RunResult[] = [];

describe.each(TRANSACTIONS)('transactions over $name keep every promise', ({ plan }) => {
  test.each(seeds)('seed %i', async (seed) => {
    const result = await runSeed(seed, plan);
    all.push(result);
    expect(result.faults.slice(0, 10)).toEqual([]);
    expect(result.acknowledged).toBeGreaterThan(10);
  });
});

test.runIf(seeds.length >= 4)('the runs met what they are for: coordinators that end, splits amid transactions', () => {
  const sum = (what: (result: RunResult) => number) => all.reduce((total, result) => total + what(result), 0);
  expect(sum(({ committed }) => committed)).toBeGreaterThan(5 * all.length);
  expect(sum(({ refused }) => refused)).toBeGreaterThan(all.length);
  expect(sum(({ splitsAmidTransactions }) => splitsAmidTransactions)).toBeGreaterThan(0);
  expect(sum(({ merges }) => merges)).toBeGreaterThan(0);
  expect(sum(({ moves }) => moves)).toBeGreaterThan(0);
  const moments = new Set(all.flatMap(({ kills }) => [...kills.keys()]));
  for (const message of ['txnPrepare', 'txnDecide', 'txnResolve']) {
    for (const moment of ['before', 'behind', 'after']) expect(moments).toContain(`${moment} ${message}`);
  }
});
