import { describe, expect, test } from 'vitest';
import { pauseCeilingMs, type RetryOptions, retryPolicy } from './retry.ts';

describe('pauses between attempts', () => {
  const rows: readonly { name: string; options: RetryOptions; expect: readonly number[] }[] = [
    { name: 'double up to a second', options: {}, expect: [20, 40, 80, 1_000, 1_000] },
    {
      name: 'begin and end as they are told',
      options: { initial: '100ms', max: '10s' },
      expect: [100, 200, 400, 6_400, 10_000],
    },
    {
      name: 'are equal when they begin with the longest',
      options: { initial: '2s' },
      expect: [2_000, 2_000, 2_000, 2_000, 2_000],
    },
  ];
  test.each(rows)('$name', ({ options, expect: expected }) => {
    expect([0, 1, 2, 6, 1_000_000].map((failures) => pauseCeilingMs(retryPolicy(options), failures))).toEqual(expected);
  });

  const refused: readonly RetryOptions[] = [
    { initial: 0 },
    { initial: '2s', max: '1s' },
    { attempts: 0 },
    { attempts: 1.5 },
    { max: Number.NaN },
  ];
  test.each(refused)('%o is refused', (options) => {
    expect(() => retryPolicy(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});
