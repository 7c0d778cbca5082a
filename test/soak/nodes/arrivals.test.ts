import { SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { Arrivals } from './arrivals.ts';

function allDue(arrivals: Arrivals, nowMs: number): readonly number[] {
  const due: number[] = [];
  for (let each = arrivals.due(nowMs); each !== undefined; each = arrivals.due(nowMs)) due.push(each);
  return due;
}

test('arrivals come at the rate, at uneven intervals', () => {
  const due = allDue(new Arrivals(new SeededRandom(1), { ratePerSecond: 500, atMs: 1_000 }), 21_000);
  expect(Math.abs(due.length - 10_000)).toBeLessThan(400);
  const gaps = due.map((each, i) => each - (due[i - 1] ?? 1_000));
  expect(Math.max(...gaps)).toBeGreaterThan(8);
  expect(gaps.filter((gap) => gap < 1).length / gaps.length).toBeCloseTo(1 - Math.exp(-0.5), 1);
});

test('a time in which nobody looked moves no arrival', () => {
  const begin = { ratePerSecond: 100, atMs: 0 };
  const steadily = new Arrivals(new SeededRandom(2), begin);
  const seen = Array.from({ length: 100 }, (_, i) => allDue(steadily, 50 * (i + 1))).flat();
  expect(allDue(new Arrivals(new SeededRandom(2), begin), 5_000)).toEqual(seen);
});
