import { compareBytes, prefixEnd } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { covers, SpanIndex, type Spanned, spanTest } from './span-index.ts';

/** Few and short, so that they begin alike; with the bytes at which the end of a prefix carries over. */
const key = fc
  .uint8Array({ min: 0, max: 255, maxLength: 4 })
  .map((bytes) => bytes.map((byte) => [0, 1, 254, 255][byte % 4] ?? 0));

const span: fc.Arbitrary<Spanned> = fc.oneof(
  key.map((start) => ({ key: start, end: undefined })),
  key.map((start) => ({ key: start, end: start.length === 0 ? start : prefixEnd(start) })),
  key.map((start) => ({ key: start, end: new Uint8Array(0) })),
  fc.tuple(key, key).map(([a, b]) => (compareBytes(a, b) <= 0 ? { key: a, end: b } : { key: b, end: a })),
);

function namesOf(spans: readonly Spanned[], found: readonly Spanned[]): number[] {
  return found.map((one) => spans.indexOf(one)).sort((a, b) => a - b);
}

test('whoever covers a key is found, once, and nobody else, whatever comes and goes', () => {
  fc.assert(
    fc.property(
      fc.array(span, { maxLength: 30 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      fc.array(key),
      (spans, gone, keys) => {
        const index = new SpanIndex<Spanned>();
        for (const one of spans) index.add(one);
        const removed = new Set(gone.flatMap((n) => spans[n] ?? []));
        for (const one of removed) index.remove(one);
        const left = spans.filter((one) => !removed.has(one));
        for (const wanted of keys) {
          const found: Spanned[] = [];
          index.forEach(wanted, (one) => found.push(one));
          const expected = left.filter((one) => covers(one, wanted));
          expect(namesOf(spans, found)).toEqual(namesOf(spans, expected));
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('the test that is made for a span covers the keys that the span covers', () => {
  fc.assert(
    fc.property(span, fc.array(key), (one, keys) => {
      const test = spanTest(one);
      expect(keys.filter((wanted) => test(wanted))).toEqual(keys.filter((wanted) => covers(one, wanted)));
    }),
    { numRuns: 2_000 },
  );
});
