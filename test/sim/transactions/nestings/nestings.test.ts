import { describe, expect, test } from 'vitest';
import { Differences } from './difference.ts';
import { casesOf, txnOf } from './nestings.ts';

/**
 * `NESTINGS=all npx vitest run --project unit test/sim/transactions/nestings` takes every case; `NESTINGS=2/8` an
 * eighth.
 */
const which = process.env.NESTINGS;
/** Otherwise a test takes so many of them, spread evenly. */
const SAMPLES = Number(process.env.NESTINGS_SAMPLES ?? 2_000);
const ALL_MS = 4 * 3_600_000;
const DIFFERENCES_MAX = 5;
/** All keys in one range; two ranges; each key in one of its own. */
const BORDERS = [[], ['m'], ['b', 'o']];

function* numbers(leaves: number): Generator<number> {
  const count = casesOf(leaves);
  const [part = 1, parts = 1] = which === undefined || which === 'all' ? [] : which.split('/').map(Number);
  // Odd, so that the shape, the operations and the comparisons all vary.
  const step = which === undefined ? Math.ceil(count / SAMPLES) | 1 : parts;
  for (let number = part - 1; number < count; number += step) yield number;
}

describe.each([2, 3])('transactions of %i operations in every nesting', (leaves) => {
  test('are answered the same over one range and over several, and leave the same', { timeout: ALL_MS }, async () => {
    const differences = new Differences(BORDERS);
    for (const number of numbers(leaves)) {
      await differences.compare(`case ${number}`, txnOf(leaves, number));
      if (differences.found.length === DIFFERENCES_MAX) break;
    }
    const { executed, refused, found } = differences;
    if (which !== undefined)
      console.info(`${leaves} operations: ${executed} executed, ${refused} refused, ${found.length} differ`);
    expect(found).toEqual([]);
    expect(executed).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });
});
