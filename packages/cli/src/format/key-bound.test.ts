import { expect, test } from 'vitest';
import { jsonBound } from './key-bound.ts';

test.each([
  { bound: [], json: null },
  { bound: [3, ...Buffer.from('orders/')], json: { space: 'key', key: 'orders/', text: 'key:orders/' } },
  { bound: [3, 0xff, 0], json: { space: 'key', key: { base64: '/wA=' }, text: 'key:\\xff\\x00' } },
  { bound: [2], json: { space: 'lock', key: '', text: 'lock:' } },
  { bound: [1, 0xab, 0xcd], json: { space: 'lease', key: { base64: 'q80=' }, text: 'lease:abcd' } },
  { bound: [9, 1], json: { space: '9', key: '\u0001', text: 'raw:0901' } },
])('the bound of a range $bound in JSON has its space, its bytes and what --key takes', ({ bound, json }) => {
  expect(jsonBound(Buffer.from(bound))).toEqual(json);
});
