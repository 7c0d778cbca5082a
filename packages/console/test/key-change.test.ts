import { describe, expect, test } from 'vitest';
import { timeOfDay } from '../src/logic/format.ts';
import { changeText } from '../src/logic/key-change.ts';

const atMs = new Date(2025, 0, 31, 13, 5, 9).getTime();
const [old, current] = [{ modRevision: 8_257 }, { modRevision: 8_900 }];

test('the time of the day is to the second', () => {
  expect(timeOfDay(atMs)).toBe('13:05:09');
});

describe('a key since it was loaded', () => {
  test.each([
    { name: 'is unchanged', found: old, present: old, expected: undefined },
    { name: 'is still absent', found: undefined, present: undefined, expected: undefined },
    {
      ...{ name: 'was written', found: old, present: current },
      expected: 'The key has changed since you loaded it at 13:05:09: it is at revision 8,900 now.',
    },
    {
      ...{ name: 'was deleted', found: old, present: undefined },
      expected: 'The key was deleted since you loaded it at 13:05:09.',
    },
    {
      ...{ name: 'was created', found: undefined, present: current },
      expected: 'The key was created since you loaded it at 13:05:09: it is at revision 8,900 now.',
    },
  ])('$name', ({ found, present, expected }) => {
    expect(changeText({ found, atMs }, present)).toBe(expected);
  });
});
