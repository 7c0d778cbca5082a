import { expect, test } from 'vitest';
import { longestQueueFirst } from '../src/logic/lock-order.ts';

test('locks are sorted by their queues, callers at a barrier included, and otherwise keep their order', () => {
  const locks = [
    { name: 'a', waiterCount: 1 },
    { name: 'b', waiterCount: 12 },
    { name: 'c', waiterCount: 0, passing: 13 },
    { name: 'd', waiterCount: 1 },
  ];
  expect(longestQueueFirst(locks).map(({ name }) => name)).toEqual(['c', 'b', 'a', 'd']);
  expect(locks[0]?.name).toBe('a');
});
