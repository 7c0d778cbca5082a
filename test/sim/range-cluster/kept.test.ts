import { expect, test } from 'vitest';
import { LEASES, TRANSACTIONS } from './plans.ts';
import { runSeed } from './run.ts';

/** Runs that once found something in the product; they stay. */
const KEPT = [
  {
    seed: 603,
    among: LEASES,
    place: 1,
    found: 'a request that went on twice, and was told to have failed and was applied',
  },
  {
    seed: 92,
    among: TRANSACTIONS,
    place: 0,
    found: 'a transaction that outlived its time-out while the master was silent',
  },
];

test.each(KEPT)('seed $seed, which found $found', async ({ seed, among, place }) => {
  const { faults } = await runSeed(seed, among[place]?.plan);
  expect(faults).toEqual([]);
});
