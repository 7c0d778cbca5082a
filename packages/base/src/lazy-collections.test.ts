import { expect, test } from 'vitest';
import { LazyMap, LazySet } from './lazy-collections.ts';

test('a lazy map behaves like a map, empty or not', () => {
  const map = new LazyMap<string, number>();
  expect([map.size, map.get('a'), map.has('a'), map.delete('a'), [...map], [...map.keys()]]).toEqual([
    ...[0, undefined, false, false],
    ...[[], []],
  ]);
  map.clear();
  map.set('a', 1).set('b', 2);
  expect([map.size, map.get('a'), map.has('b'), [...map.values()]]).toEqual([2, 1, true, [1, 2]]);
  expect([map.delete('a'), [...map.entries()]]).toEqual([true, [['b', 2]]]);
  const seen: unknown[] = [];
  for (const [key] of map) {
    seen.push(key);
    if (map.size < 3) map.set(`${key}c`, 3);
  }
  map.forEach((value, key) => void seen.push(key, value));
  expect(seen).toEqual(['b', 'bc', 'bcc', 'b', 2, 'bc', 3, 'bcc', 3]);
  map.clear();
  expect(map.size).toBe(0);
});

test('a lazy set behaves like a set, empty or not', () => {
  const set = new LazySet<number>();
  expect([set.size, set.has(1), set.delete(1), [...set]]).toEqual([0, false, false, []]);
  set.add(1).add(2).add(1);
  expect([set.size, set.has(1), set.delete(1), [...set.values()]]).toEqual([2, true, true, [2]]);
  set.clear();
  expect(set.size).toBe(0);
});
