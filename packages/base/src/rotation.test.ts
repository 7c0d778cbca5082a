import { expect, test } from 'vitest';
import { Rotation } from './rotation.ts';

test('a rotation visits every member in each round, also when the shares come out even', () => {
  const members = new Set([1, 2, 3, 4]);
  const rotation = new Rotation(() => members);
  const take = (count: number) => [...rotation.next(count)];
  expect([take(2), take(2), take(2), take(3)]).toEqual([
    [1, 2],
    [3, 4],
    [1, 2],
    [3, 4],
  ]);
  expect(rotation.atStart).toBe(true);
  take(1);
  members.delete(2);
  members.add(5);
  expect([take(2), take(9), take(9)]).toEqual([[3, 4], [5], [1, 3, 4, 5]]);
  members.clear();
  expect(take(3)).toEqual([]);
});
