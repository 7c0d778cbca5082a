import { expect, test } from 'vitest';
import type { Operation } from './evidence.ts';
import { Figures } from './figures.ts';

const MS = 1e6;

function put(fromMs: number, toMs: number | null, how: Operation['how'] = 'done'): Operation {
  const t1 = toMs === null ? null : toMs * MS;
  const q = { c: 'a', k: 'register/0/0', op: 'put' };
  return {
    process: 'a',
    w: 'registers',
    q,
    t0: fromMs * MS,
    t1,
    how,
    code: how === 'done' ? undefined : 'WHY',
    a: undefined,
  };
}

test('operations are counted by outcome, by second, and by reason', () => {
  const figures = new Figures();
  for (const each of [put(0, 10), put(100, 400), put(1_100, null, 'unknown'), put(1_200, 1_300, 'refused')])
    figures.take(each);
  const { operations, byOutcome, byCode, seconds } = figures.result(2_000 * MS);
  expect({ operations, byOutcome, byCode }).toEqual({
    operations: 4,
    byOutcome: { done: 2, unknown: 1, refused: 1 },
    byCode: { 'unknown: WHY': 1, 'refused: WHY': 1 },
  });
  expect(seconds).toEqual([
    { done: 2, unknown: 0, refused: 0, p50: 300, p99: 300, max: 300 },
    { done: 0, unknown: 1, refused: 1 },
  ]);
});

test('an outage lasts from one acknowledged write to the next, or to the end of the load', () => {
  const figures = new Figures();
  for (const each of [put(4_900, 5_000), put(5_000, 5_100), put(5_200, 7_100), put(5_300, null, 'unknown')])
    figures.take(each);
  expect(figures.result(8_100 * MS).outages).toEqual([
    { fromMs: 5_100, ms: 2_000 },
    { fromMs: 7_100, ms: 1_000 },
  ]);
});
