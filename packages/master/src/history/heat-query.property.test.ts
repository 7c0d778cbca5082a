import { HEAT_MEASURES, type Heat, type HeatRequest, heatOfSpans, MEASURES } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { heatQuery } from './heat-query.ts';

const border = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), minLength: 1, maxLength: 3 });
const heat: fc.Arbitrary<Heat> = fc
  .array(
    fc.record({
      start: border,
      more: border,
      values: fc.array(fc.integer({ min: 0, max: 10_000 }), { minLength: MEASURES, maxLength: MEASURES }),
    }),
    { maxLength: 20 },
  )
  .map((spans) => heatOfSpans(spans.map(({ start, more, values }) => ({ start, end: start + more, values }))));
const minutes = fc.array(fc.option(heat, { nil: undefined }), { minLength: 1, maxLength: 20 });
const key = fc.oneof(fc.constant(''), border);
const request = fc.record({
  minutes: fc.constant(60),
  columns: fc.integer({ min: 1, max: 12 }),
  measure: fc.constantFrom(...HEAT_MEASURES),
  bounds: fc.tuple(key, key).filter(([start, end]) => end === '' || start < end),
});

function asked(
  all: readonly (Heat | undefined)[],
  {
    bounds,
    ...rest
  }: { readonly bounds: readonly [string, string] } & Pick<HeatRequest, 'minutes' | 'columns' | 'measure'>,
) {
  const span = { first: 100, count: all.length };
  const query = heatQuery((minute) => all[minute - 100], span, {
    ...rest,
    start: Buffer.from(bounds[0]),
    end: Buffer.from(bounds[1]),
  });
  let turn = query.next();
  while (!turn.done) turn = query.next();
  const { borders, values } = turn.value;
  return { borders: borders.map((each) => Buffer.from(each).toString()), values };
}

function totalOf({ values }: Heat, measure: HeatRequest['measure']): number {
  return values.filter((_value, i) => i % MEASURES === HEAT_MEASURES.indexOf(measure)).reduce((a, b) => a + b, 0);
}

describe('the load by key and minute', () => {
  test('has few enough columns, in the span that was asked for, and a row for each minute (HQ1)', () => {
    fc.assert(
      fc.property(minutes, request, (all, wanted) => {
        const { borders, values } = asked(all, wanted);
        const [start, end] = wanted.bounds;
        expect(borders.length).toBeLessThanOrEqual(wanted.columns);
        expect(borders[0]).toBe(start);
        for (const each of borders.slice(1)) expect(each > start && (end === '' || each < end)).toBe(true);
        expect(values).toHaveLength(all.length * borders.length);
        all.forEach((minute, i) => {
          const row = values.subarray(i * borders.length, (i + 1) * borders.length);
          expect(row.some(Number.isNaN)).toBe(minute === undefined);
        });
        expect(asked(all, wanted)).toEqual({ borders, values });
      }),
    );
  });

  test('has the whole load of each minute when all keys are asked for, and no more of a part', () => {
    fc.assert(
      fc.property(minutes, request, (all, wanted) => {
        const whole = asked(all, { ...wanted, bounds: ['', ''] });
        const part = asked(all, wanted);
        all.forEach((minute, i) => {
          if (minute === undefined) return;
          const total = totalOf(minute, wanted.measure);
          const sum = ({ borders, values }: typeof whole): number =>
            values.subarray(i * borders.length, (i + 1) * borders.length).reduce((a, b) => a + b, 0);
          expect(Math.abs(sum(whole) - total)).toBeLessThanOrEqual(1e-5 * Math.max(1, total));
          expect(sum(part)).toBeLessThanOrEqual(total * (1 + 1e-5));
        });
      }),
    );
  });
});

test('zooming into a span shows it in more columns, with the load that lies there', () => {
  const spans = Array.from({ length: 100 }, (_, i) => ({
    start: `k${String(i).padStart(2, '0')}`,
    end: i === 99 ? 'l' : `k${String(i + 1).padStart(2, '0')}`,
    values: [10, 0, 0, 0],
  }));
  const all = [heatOfSpans(spans), undefined, heatOfSpans(spans)];
  const far = asked(all, { minutes: 60, columns: 10, measure: 'reads', bounds: ['', ''] });
  const near = asked(all, { minutes: 60, columns: 10, measure: 'reads', bounds: ['k40', 'k50'] });
  expect(near.borders).toEqual(Array.from({ length: 10 }, (_, i) => `k4${i}`));
  expect([...near.values.subarray(0, 10)]).toEqual(new Array(10).fill(10));
  expect(far.borders.filter((each) => each >= 'k40' && each < 'k50').length).toBeLessThan(3);
});
