import { compareBytes } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rangeInfo } from '../../test/support/scheduling-bed.ts';
import { coverageFaults } from './cluster-check.ts';

type Spans = readonly (readonly [start: string, end: string])[];

function faults(spans: Spans): readonly string[] {
  const ranges = spans.map(([start, end], i) => rangeInfo(i + 1, { voters: [1], start, end }).descriptor);
  const inKeyOrder = ranges.sort((a, b) => compareBytes(a.start, b.start) || a.rangeId - b.rangeId);
  return coverageFaults(inKeyOrder).map(
    ({ type, start, end, rangeIds }) => `${type} [${Buffer.from(start)}, ${Buffer.from(end)}) ${rangeIds.join(' ')}`,
  );
}

test.each<{ name: string; given: Spans; expected: readonly string[] }>([
  { name: 'no ranges, no fault', given: [], expected: [] },
  { name: 'one range over everything', given: [['', '']], expected: [] },
  {
    name: 'neighbours, in any order',
    given: [
      ['g', ''],
      ['', 'c'],
      ['c', 'g'],
    ],
    expected: [],
  },
  { name: 'a hole at the beginning', given: [['c', '']], expected: ['hole [, c) 1'] },
  { name: 'a hole at the end', given: [['', 'c']], expected: ['hole [c, ) 1'] },
  {
    name: 'a hole in between',
    given: [
      ['', 'c'],
      ['g', ''],
    ],
    expected: ['hole [c, g) 1 2'],
  },
  {
    name: 'an overlap',
    given: [
      ['', 'g'],
      ['c', ''],
    ],
    expected: ['overlap [c, g) 1 2'],
  },
  {
    name: 'a range inside another',
    given: [
      ['', ''],
      ['c', 'g'],
    ],
    expected: ['overlap [c, g) 1 2'],
  },
  {
    name: 'two that begin alike',
    given: [
      ['', 'c'],
      ['', ''],
    ],
    expected: ['overlap [, c) 1 2'],
  },
  {
    name: 'a range inside another does not hide what follows',
    given: [
      ['', 'm'],
      ['c', 'g'],
      ['p', ''],
    ],
    expected: ['overlap [c, g) 1 2', 'hole [m, p) 1 3'],
  },
])('$name', ({ given, expected }) => expect(faults(given)).toEqual(expected));

test('ranges made by cutting have no faults; leaving one out, or having one twice, is one', () => {
  const cuts = fc.uniqueArray(fc.constantFrom(...'bcdefgh'), { minLength: 1 });
  fc.assert(
    fc.property(cuts, fc.nat(), (unsorted, pick) => {
      const keys = ['', ...unsorted.sort(), ''];
      const spans: Spans = keys.slice(1).map((end, i) => [keys[i] ?? '', end]);
      const chosen = pick % spans.length;
      expect(faults(spans)).toEqual([]);
      expect(faults(spans.filter((_, i) => i !== chosen))).toHaveLength(1);
      expect(faults([...spans, spans[chosen] ?? ['', '']])).toHaveLength(1);
    }),
  );
});
