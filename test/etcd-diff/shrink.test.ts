import { expect, test } from 'vitest';
import { shrink } from './shrink.ts';

const NUMBERS = Array.from({ length: 100 }, (_, i) => i);

test('what is left fails, and nothing of it can be left out', async () => {
  const fails = async (part: readonly number[]) => [3, 41, 97].every((needed) => part.includes(needed));
  expect(await shrink(NUMBERS, fails, { triesMax: 1_000 })).toEqual([3, 41, 97]);
});

test('a list of which everything is needed stays as it is', async () => {
  const fails = async (part: readonly number[]) => part.length === NUMBERS.length;
  expect(await shrink(NUMBERS, fails, { triesMax: 1_000 })).toEqual(NUMBERS);
});

test('the number of tries is bounded', async () => {
  let tries = 0;
  const fails = async (part: readonly number[]) => {
    tries++;
    return part.includes(50);
  };
  expect(await shrink(NUMBERS, fails, { triesMax: 5 })).toContain(50);
  expect(tries).toBe(5);
});

test('elements are made smaller once none can be left out', async () => {
  const fails = async (part: readonly number[]) => part.some((each) => each >= 50 && each % 2 === 0);
  const smaller = (each: number) => [each - 1, each - 2].filter((less) => less >= 0);
  expect(await shrink(NUMBERS, fails, { triesMax: 1_000, smaller })).toEqual([50]);
});
