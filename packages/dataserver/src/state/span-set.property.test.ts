import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasKey, hasSpan, minusSpan, plusSpan, type SpanSet, withinSpan } from './span-set.ts';

const KEYS = 12;
const keyAt = (i: number): Buffer => Buffer.from([i]);
const spans = fc
  .tuple(fc.nat({ max: KEYS - 1 }), fc.integer({ min: 1, max: KEYS }))
  .map(([first, length]) => ({ start: keyAt(first), end: keyAt(first + length) }));
const changes = fc.array(fc.tuple(fc.boolean(), spans), { maxLength: 20 });

/** The keys of a set, by their first byte. */
function keysOf(set: SpanSet): readonly number[] {
  return Array.from({ length: 2 * KEYS }, (_, i) => i).filter((i) => hasKey(set, keyAt(i)));
}

test('a set has the keys of the spans that were added and not taken away since, each in one span, in order', () => {
  fc.assert(
    fc.property(changes, spans, (made, window) => {
      let set: SpanSet = [];
      const model = new Set<number>();
      for (const [added, span] of made) {
        set = added ? plusSpan(set, span) : minusSpan(set, span);
        for (const i of keysOf([span])) added ? model.add(i) : model.delete(i);
      }
      const inside = keysOf([window]);
      expect(keysOf(set)).toEqual([...model].sort((a, b) => a - b));
      expect(hasSpan(set, window)).toBe(inside.every((i) => model.has(i)));
      expect(keysOf(withinSpan(set, window))).toEqual(inside.filter((i) => model.has(i)));
      for (const [i, { start, end }] of set.entries()) {
        expect(Buffer.compare(start, end)).toBeLessThan(0);
        expect(Buffer.compare(set[i - 1]?.end ?? keyAt(0), start)).toBeLessThanOrEqual(0);
      }
    }),
  );
});

test('spans that were added apart stay apart, and what is there already changes nothing', () => {
  const [low, high] = [
    { start: keyAt(1), end: keyAt(3) },
    { start: keyAt(3), end: keyAt(5) },
  ];
  const set = plusSpan(plusSpan([], high), low);
  expect(set).toEqual([low, high]);
  expect(plusSpan(set, { start: keyAt(2), end: keyAt(4) })).toBe(set);
});
