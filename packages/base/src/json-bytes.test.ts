import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fromJsonBytes, jsonBytes } from './json-bytes.ts';

test('any bytes come back as they were, over JSON', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
      ),
      (bytes) => {
        const read = fromJsonBytes(JSON.parse(JSON.stringify(jsonBytes(bytes))));
        expect(read && Buffer.from(read)).toEqual(Buffer.from(bytes));
      },
    ),
  );
});

test('text stays text, and what is none is marked', () => {
  expect(jsonBytes(Buffer.from('orders/42'))).toBe('orders/42');
  expect(jsonBytes(Buffer.from([0xff, 0x00]))).toEqual({ base64: '/wA=' });
});

test.each([
  1,
  null,
  undefined,
  true,
  ['a'],
  {},
  { base64: 1 },
  { base64: 'a b' },
  { base64: 'YQ==', more: 1 },
  '\ud800',
])('%j stands for no bytes', (value) => {
  expect(fromJsonBytes(value)).toBeUndefined();
});
