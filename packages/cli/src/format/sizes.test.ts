import { expect, test } from 'vitest';
import { agoText, rateText, sizeText } from './sizes.ts';

test.each([
  [0, '0B'],
  [999, '999B'],
  [1_000, '1.0KiB'],
  [1_536, '1.5KiB'],
  [64 * 2 ** 20, '64.0MiB'],
  [150 * 2 ** 20, '150MiB'],
  [2 ** 50, '1024TiB'],
])('%d bytes are shown as %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

test.each([
  [-1, 'never'],
  [0, '0.0s'],
  [9_940, '9.9s'],
  [61_000, '61s'],
  [700_000, '12m'],
  [40_000_000, '11h'],
  [10 * 86_400_000, '10d'],
])('%d ms ago is shown as %s', (ms, text) => {
  expect(agoText(ms)).toBe(text);
});

test.each([
  [0, '0'],
  [0.26, '0.3'],
  [12.7, '13'],
])('%d per second is shown as %s', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});
