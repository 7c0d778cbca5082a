import { describe, expect, test } from 'vitest';
import { settingsOf } from './settings.ts';

const given = { kinds: ['partition', 'disk full'], chance: () => 42 };

test('without options it is a minute, three nodes, all faults, and a seed by chance', () => {
  expect(settingsOf([], given)).toMatchObject({ minutes: 1, nodes: 3, seed: 42, only: undefined });
});

test('kinds of faults are named as they are', () => {
  expect(settingsOf(['--faults', 'partition, disk full'], given).only).toEqual(new Set(given.kinds));
});

describe('what cannot be is refused, with its reason', () => {
  test.each([
    { args: ['--minutes', '0'], says: '--minutes: "0" is not a number above 0' },
    { args: ['--minutes', 'soon'], says: '--minutes: "soon" is not a number above 0' },
    { args: ['--seed', '1.5'], says: '--seed: "1.5" is not a whole number above 0' },
    { args: ['--nodes', '4'], says: '--nodes: 4 is neither 3 nor 5' },
    { args: ['--faults', 'rain'], says: "there is no fault 'rain'; there are: partition, disk full" },
    { args: ['--kills', '5'], says: '--kills' },
  ])('$args', ({ args, says }) => {
    expect(() => settingsOf(args, given)).toThrow(says);
  });
});
