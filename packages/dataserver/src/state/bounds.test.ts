import { EMPTY_BYTES, type Span, spanContains } from '@remora/base';
import { type LockId, lockSpan } from '@remora/lock';
import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { boundsOf, hullOf, isBorder, rangeSpans, spansOverlap } from './bounds.ts';
import { attachedKeyRow, attachedLockRow, currentKey, historyKey, leaseKey, stateKey } from './keys.ts';

const ALL: Span = { start: EMPTY_BYTES, end: EMPTY_BYTES };
const key = (text: string): Buffer => Buffer.from(text, 'latin1');
const lock = (name: string): LockId => ({ namespace: 'n', name: key(name) });
const inLock = (name: string): Buffer => Buffer.concat([lockSpan(lock(name)).start, Buffer.from([1, 2])]);

/** Places to cut at, in order, and what lies between each and the next. */
const BORDERS = [
  EMPTY_BYTES,
  leaseKey(7n),
  Buffer.from([2]),
  lockSpan(lock('b')).start,
  Buffer.from([3]),
  kvRoutingKey(key('b')),
  kvRoutingKey(key('b\0')),
  kvRoutingKey(key('\xff')),
];
const ROWS: readonly (readonly Buffer[])[] = [
  [leaseKey(1n), attachedKeyRow(leaseKey(1n), key('z'))],
  [
    leaseKey(7n),
    attachedKeyRow(leaseKey(7n), key('a')),
    attachedLockRow(leaseKey(7n), lockSpan(lock('a')).start),
    leaseKey(-1n),
  ],
  [inLock('a'), inLock('a\0')],
  [inLock('b'), inLock('ba')],
  [currentKey(key('a')), historyKey(key('a'), 3), historyKey(key('a\0'), 3)],
  [currentKey(key('b')), historyKey(key('b'), 9)],
  [currentKey(key('b\0')), historyKey(key('b\0'), 1), historyKey(key('ba'), 1)],
  [currentKey(key('\xff')), historyKey(key('\xff\xff'), 2)],
];

function holds(span: Span, row: Buffer): boolean {
  return rangeSpans(2, span).some((part) => spanContains(part, row));
}

describe('ranges that lie side by side', () => {
  test.each(BORDERS.map((start, i) => ({ i, start })))('have each row once: those of part $i', ({ i, start }) => {
    const own = { start, end: BORDERS[i + 1] ?? EMPTY_BYTES };
    for (const [j, rows] of ROWS.entries()) {
      for (const row of rows) expect(holds(own, row), `${row.toString('hex')} of part ${j}`).toBe(i === j);
    }
  });

  test('have nothing of each other’s own rows', () => {
    expect([holds(ALL, stateKey(2)), holds(ALL, stateKey(3))]).toEqual([true, false]);
  });

  test('share no keys, and with what covers both they do', () => {
    for (const [i, start] of BORDERS.entries()) {
      const own = { start, end: BORDERS[i + 1] ?? EMPTY_BYTES };
      expect(spansOverlap(own, ALL)).toBe(true);
      for (const [j, other] of BORDERS.entries()) {
        expect(spansOverlap(own, { start: other, end: BORDERS[j + 1] ?? EMPTY_BYTES })).toBe(i === j);
      }
    }
  });
});

test('the smallest span over two', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((text) => kvRoutingKey(key(text)));
  if (!a || !b || !c || !d) throw new Error('there are four');
  expect(hullOf({ start: a, end: b }, { start: c, end: d })).toEqual({ start: a, end: d });
  expect(hullOf({ start: c, end: d }, { start: a, end: b })).toEqual({ start: a, end: d });
  expect(hullOf({ start: b, end: EMPTY_BYTES }, { start: a, end: d })).toEqual({ start: a, end: EMPTY_BYTES });
});

test('only a range without bounds is whole', () => {
  expect([boundsOf(ALL).whole, boundsOf({ ...ALL, start: Buffer.from([3]) }).whole]).toEqual([true, false]);
  expect(boundsOf({ ...ALL, end: Buffer.from([3]) }).keys).toBeUndefined();
});

test.each([
  ...BORDERS.slice(1).map((border) => ({ name: border.toString('hex'), border, expected: true })),
  { name: 'the beginning of everything', border: EMPTY_BYTES, expected: false },
  { name: 'range-local rows', border: Buffer.from([0, 5]), expected: false },
  { name: 'older versions', border: historyKey(key('a'), 1), expected: false },
  { name: 'a beginning of leases', border: Buffer.from([1, 0x80]), expected: true },
  { name: 'within a lease', border: attachedKeyRow(leaseKey(7n), key('a')), expected: false },
  { name: 'within a lock', border: inLock('a'), expected: false },
  { name: 'a beginning of locks', border: inLock('abc').subarray(0, 4), expected: true },
])('a range may begin at $name: $expected', ({ border, expected }) => {
  expect(isBorder(border)).toBe(expected);
});
