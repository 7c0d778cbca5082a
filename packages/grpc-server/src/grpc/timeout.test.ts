import { expect, test } from 'vitest';
import { timeoutMs } from './timeout.ts';

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3_000],
  ['4m', 4],
  ['5u', 0.005],
  ['0n', 0],
  ['99999999S', 99_999_999_000],
  ['123456789S', undefined],
  ['', undefined],
  ['S', undefined],
  ['-1S', undefined],
  ['1.5S', undefined],
  ['1s', undefined],
  ['1constructor', undefined],
])('the timeout %j is %s ms', (text, expected) => {
  const ms = timeoutMs(text);
  expect(ms === undefined ? undefined : Math.round(ms * 1e6) / 1e6).toBe(expected);
});
