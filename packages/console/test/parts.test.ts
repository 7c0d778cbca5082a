import { expect, test } from 'vitest';
import { joined, type Part, ROWS_MAX } from '../src/logic/parts.ts';

const part = (rows: number, next?: string): Part<number> => ({ rows: Array.from({ length: rows }, (_, i) => i), next });

test('parts are joined until the list is full, and then nothing more is read', () => {
  let list: ReturnType<typeof joined<number>> = { rows: [], next: 'first', isFull: false };
  let reads = 0;
  while (list.next !== undefined) {
    list = joined(list.rows, part(100, `part ${++reads}`));
    expect(list.rows.length).toBeLessThanOrEqual(ROWS_MAX);
  }
  expect(reads).toBe(ROWS_MAX / 100);
  expect(list).toMatchObject({ isFull: true });
});

test.each([
  ['the last part just fits', part(100), { length: ROWS_MAX, isFull: false }],
  ['more would follow', part(100, 'next'), { length: ROWS_MAX, isFull: true }],
  ['the last part is too long', part(101), { length: ROWS_MAX, isFull: true }],
])('whether a list is full: %s', (_name, last, { length, isFull }) => {
  const list = joined(part(ROWS_MAX - 100).rows, last);
  expect([list.rows.length, list.isFull, list.next]).toEqual([length, isFull, undefined]);
});
