import { expect, test } from 'vitest';
import { boundText, jsonBound } from './key-bound.ts';
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

test.each([
  { bound: [], text: '-', json: null },
  { bound: [3, ...Buffer.from('orders/')], text: 'key:orders/', json: { space: 'key', key: 'orders/' } },
  { bound: [3, 0xff, 0], text: 'key:\\xff\\x00', json: { space: 'key', key: { base64: '/wA=' } } },
  { bound: [2, 0x61, 0], text: 'lock:a\\x00', json: { space: 'lock', key: 'a\u0000' } },
  { bound: [1, 0xab, 0xcd], text: 'lease:abcd', json: { space: 'lease', key: { base64: 'q80=' } } },
  { bound: [9, 1], text: '0x0901', json: { space: '9', key: '\u0001' } },
])('the bound of a range $bound is shown as $text', ({ bound, text, json }) => {
  expect(boundText(Buffer.from(bound))).toBe(text);
  expect(jsonBound(Buffer.from(bound))).toEqual(json);
});
