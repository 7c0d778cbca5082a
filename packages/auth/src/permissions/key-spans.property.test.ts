// Over all keys of up to two bytes of a small alphabet: spans cover what a set of single keys covers.
import { EMPTY_BYTES } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type KeySpan, KeySpans } from './key-spans.ts';

const ALPHABET = [0x00, 0x61, 0x62, 0xff];
const KEYS = ALPHABET.flatMap((a) => [[a], ...ALPHABET.map((b) => [a, b])]).map((bytes) => Buffer.from(bytes));
/** Between neighbours of `KEYS` there are more keys: a span must not cover them by having all that are listed. */
const DENSE = KEYS.flatMap((key) => [
  key,
  Buffer.concat([key, Buffer.from([0])]),
  Buffer.concat([key, Buffer.from('x')]),
]);

const key = fc.constantFrom(...KEYS);
const span: fc.Arbitrary<KeySpan> = fc.oneof(
  key.map((one) => ({ key: one })),
  fc.tuple(key, key).map(([a, b]) => ({ key: a, end: b })),
  key.map((one) => ({ key: one, end: EMPTY_BYTES })),
);

function holds({ key: from, end }: KeySpan, one: Buffer): boolean {
  if (end === undefined) return Buffer.compare(from, one) === 0;
  return Buffer.compare(from, one) <= 0 && (end.length === 0 || Buffer.compare(one, end) < 0);
}

test('a span is covered exactly if every key of it is', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 6 }), span, (permitted, asked) => {
      const expected = DENSE.filter((one) => holds(asked, one)).every((one) =>
        permitted.some((each) => holds(each, one)),
      );
      expect(new KeySpans(permitted).covers(asked)).toBe(expected);
    }),
    { numRuns: 3_000 },
  );
});

test('touching spans are one (KS1)', () => {
  const spans = new KeySpans([
    { key: Buffer.from('m'), end: Buffer.from('t') },
    { key: Buffer.from('a'), end: Buffer.from('m') },
    { key: Buffer.from('t') },
  ]);
  expect(spans.covers({ key: Buffer.from('b'), end: Buffer.from('t') })).toBe(true);
  expect(spans.covers({ key: Buffer.from('b'), end: Buffer.from('t\0') })).toBe(true);
  expect(spans.covers({ key: Buffer.from('b'), end: Buffer.from('ta') })).toBe(false);
});
