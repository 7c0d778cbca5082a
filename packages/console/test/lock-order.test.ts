import { expect, test } from 'vitest';
import { foundBy, longestQueueFirst } from '../src/logic/lock-order.ts';

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

test.each([
  { text: 'orders', opens: 'orders', why: 'the exact name' },
  { text: 'der', opens: 'a-orders', why: 'the first name with the text' },
  { text: 'nothing', opens: undefined, why: 'no name has the text' },
  { text: '', opens: undefined, why: 'nothing was typed' },
])('Enter in the search for "$text" opens $opens: $why', ({ text, opens }) => {
  const locks = [{ name: { base64: 'b3JkZXJz' } }, { name: 'a-orders' }, { name: 'orders' }];
  expect(foundBy(text, locks)?.name).toEqual(opens);
});
