import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { type Duration, durationMs } from './duration.ts';

const rows: { given: Duration; expect: number }[] = [
  { given: 0, expect: 0 },
  { given: 250, expect: 250 },
  { given: '250ms', expect: 250 },
  { given: '5s', expect: 5_000 },
  { given: '1.5s', expect: 1_500 },
  { given: '2m', expect: 120_000 },
  { given: '1h', expect: 3_600_000 },
  { given: '2d', expect: 172_800_000 },
  { given: '1m30s', expect: 90_000 },
  { given: '1d12h0.5s', expect: 129_600_500 },
  { given: '0', expect: 0 },
];
test.each(rows)('$given is $expect ms', (row) => {
  expect(durationMs(row.given, 'wait')).toBe(row.expect);
});

test.each([
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  `${'9'.repeat(400)}h`,
  '5',
  '-5s',
  '5 s',
  's',
  '5w',
  '1m30',
  '30s1',
  null,
  {},
])('%s is refused', (given) => {
  expect(() => durationMs(given as Duration, 'wait')).toThrow(ServiceError);
});
