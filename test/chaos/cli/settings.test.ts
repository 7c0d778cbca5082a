import { describe, expect, test } from 'vitest';
import { settingsOf } from './settings.ts';

const given = { kinds: ['partition', 'disk full'], chance: () => 42 };

test('without options it is a minute, three nodes, all faults, and a seed by chance', () => {
  expect(settingsOf([], given)).toMatchObject({ minutes: 1, nodes: 3, seed: 42, only: undefined });
});

test('ranges change with a node more than they have replicas', () => {
  expect(settingsOf(['ranges'], given)).toMatchObject({ course: 'changes', nodes: 4 });
  expect(settingsOf([], given).course).toBe('faults');
});

test('locks are used by fifty clients in ten processes, for five minutes', () => {
  expect(settingsOf(['locks'], given)).toMatchObject({ course: 'locks', minutes: 5, clients: 10, nodes: 3 });
});

test('one seed in four, and each with --auth, is with authentication', () => {
  const authOf = (...args: readonly string[]) => settingsOf(args, given).auth;
  expect([40, 41, 42, 43].map((seed) => authOf('--seed', String(seed)))).toEqual([false, false, false, true]);
  expect([authOf('--auth'), authOf('--seed', '43', '--no-auth'), authOf('ranges', '--seed', '43')]).toEqual([
    ...[true, false, false],
  ]);
});

test('kinds of faults are named as they are', () => {
  expect(settingsOf(['--faults', 'partition, disk full'], given).only).toEqual(new Set(given.kinds));
});

describe('what cannot be is refused, with its reason', () => {
  test.each([
    { args: ['--minutes', '0'], says: '--minutes: "0" is not a number above 0' },
    { args: ['--minutes', 'soon'], says: '--minutes: "soon" is not a number above 0' },
    { args: ['--seed', '1.5'], says: '--seed: "1.5" is not a whole number above 0' },
    { args: ['--nodes', '6'], says: '--nodes: 6 is not 3 to 5' },
    { args: ['ranges', '--nodes', '3'], says: '--nodes: replicas cannot be moved with 3' },
    { args: ['range'], says: "there is no 'range'; there are: locks, ranges, upgrade" },
    { args: ['--faults', 'rain'], says: "there is no fault 'rain'; there are: partition, disk full" },
    { args: ['--kills', '5'], says: '--kills' },
    { args: ['--auth', '--no-auth'], says: '--auth and --no-auth contradict' },
    { args: ['ranges', '--auth'], says: 'runs without TLS' },
  ])('$args', ({ args, says }) => {
    expect(() => settingsOf(args, given)).toThrow(says);
  });
});
