import { expect, test } from 'vitest';
import { LINES_MAX, shownLines } from '../src/logic/line-choice.ts';

const lines = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `n${i}`, values: [i, null, 2 * i] }));

test('few lines are all shown, in their order', () => {
  expect(shownLines(lines(LINES_MAX))).toEqual(lines(LINES_MAX));
});

test('of many lines, the median and those with the highest peaks are shown', () => {
  const shown = shownLines([...lines(200), { name: 'silent', values: [null, null, null] }]);
  expect(shown.map(({ name }) => name)).toEqual([
    'median of 201',
    'n199',
    'n198',
    'n197',
    'n196',
    'n195',
    'n194',
    'n193',
  ]);
  expect(shown[0]?.values).toEqual([100, null, 200]);
});
