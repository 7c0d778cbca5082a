import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addedHeat,
  coarsened,
  HEAT_MEASURES,
  type Heat,
  type HeatSpan,
  heatOfSpans,
  MEASURES,
  NO_HEAT,
  onBorders,
  spansOfHeat,
  weightOfMeasure,
} from './heat.ts';

const border = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), minLength: 1, maxLength: 3 });
const values = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: MEASURES, maxLength: MEASURES });
const spans: fc.Arbitrary<HeatSpan[]> = fc.array(
  fc.record({ start: fc.oneof(fc.constant(''), border), more: border, isOpen: fc.boolean(), values }).map((each) => ({
    start: each.start,
    end: each.isOpen ? '' : each.start + each.more,
    values: each.values,
  })),
  { maxLength: 40 },
);
const heat = spans.map(heatOfSpans);

function totals({ values: all }: Pick<Heat, 'values'>): number[] {
  return HEAT_MEASURES.map((_measure, m) => all.filter((_value, i) => i % MEASURES === m).reduce((a, b) => a + b, 0));
}

function expectSame(a: readonly number[], b: readonly number[]): void {
  a.forEach((value, i) => {
    expect(Math.abs(value - (b[i] ?? Number.NaN))).toBeLessThanOrEqual(1e-9 * Math.max(1, value));
  });
}

/** HT1. */
function expectWhole({ borders, values: all }: Heat): void {
  expect(borders[0]).toBe('');
  expect(all).toHaveLength(borders.length * MEASURES);
  expect([...borders].sort((a, b) => (a < b ? -1 : 1))).toEqual(borders);
  expect(new Set(borders).size).toBe(borders.length);
}

describe('columns of load', () => {
  test('have the load of their spans, each at its start (HT2)', () => {
    fc.assert(
      fc.property(spans, (given) => {
        const made = heatOfSpans(given);
        expectWhole(made);
        const sums = HEAT_MEASURES.map((_m, m) => given.reduce((sum, span) => sum + (span.values[m] ?? 0), 0));
        expect(totals(made)).toEqual(sums);
        for (const { start } of given) expect(made.borders).toContain(start);
        expect(heatOfSpans(spansOfHeat(made)).values.filter(Boolean)).toEqual(made.values.filter(Boolean));
      }),
    );
  });

  test('keep their load when they are added, divided and merged (HT1, HT2)', () => {
    fc.assert(
      fc.property(heat, heat, fc.integer({ min: 1, max: 12 }), (a, b, max) => {
        const sum = addedHeat(a, b);
        expectWhole(sum);
        expectSame(
          totals(sum),
          totals(a).map((value, m) => value + (totals(b)[m] ?? 0)),
        );
        const fewer = coarsened(sum, max);
        expectWhole(fewer);
        expect(fewer.borders.length).toBeLessThanOrEqual(max);
        expectSame(totals(fewer), totals(sum));
        expectSame(totals({ values: onBorders(sum, b.borders) }), totals(sum));
        for (const measure of HEAT_MEASURES) {
          expectSame(totals(coarsened(sum, max, weightOfMeasure(measure))), totals(sum));
        }
      }),
    );
  });

  test('are the same whenever they are made of the same load, and adding nothing changes nothing', () => {
    fc.assert(
      fc.property(heat, heat, (a, b) => {
        expect(coarsened(addedHeat(a, b), 5)).toEqual(coarsened(addedHeat(a, b), 5));
        expect(addedHeat(a, NO_HEAT)).toEqual(a);
        expect(onBorders(a, a.borders)).toEqual(a.values);
      }),
    );
  });
});

test('a hot key keeps its narrow column, whatever is merged around it (HT4)', () => {
  const many = Array.from({ length: 300 }, (_, i) => ({
    start: `k${String(i).padStart(3, '0')}`,
    end: `k${String(i + 1).padStart(3, '0')}`,
    values: [i === 123 ? 5_000 : 1, 0, 0, 0],
  }));
  const fewer = coarsened(heatOfSpans(many), 10);
  const at = fewer.borders.indexOf('k123');
  expect(fewer.borders[at + 1]).toBe('k124');
  expect(fewer.values[at * MEASURES]).toBe(5_000);
});

test('what lies in one column is divided evenly among the columns that divide it (HT3)', () => {
  const wide = heatOfSpans([{ start: 'a', end: 'e', values: [8, 4, 0, 0] }]);
  const divided = onBorders(wide, ['', 'a', 'b', 'c', 'd', 'e']);
  expect([...divided].filter((_value, i) => i % MEASURES === 0)).toEqual([0, 2, 2, 2, 2, 0]);
});

test('each measure counts by its share, so that few large reads are not lost among many small writes', () => {
  const reads = { start: 'm', end: 'n', values: [1, 1_000, 0, 0] };
  const writes = Array.from({ length: 64 }, (_, i) => ({
    start: `k${String(i).padStart(2, '0')}`,
    end: `k${String(i + 1).padStart(2, '0')}`,
    values: [0, 0, 100, 10],
  }));
  const fewer = coarsened(heatOfSpans([...writes, reads]), 8);
  expect(fewer.borders).toContain('m');
  expect(fewer.values[fewer.borders.indexOf('m') * MEASURES]).toBe(1);
});
