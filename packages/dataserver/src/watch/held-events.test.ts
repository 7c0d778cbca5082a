import type { KvEvent } from '@remora/protocol';
import { expect, test } from 'vitest';
import { HeldEvents } from './held-events.ts';

function eventOf(key: string, modRevision: number): KvEvent {
  const kv = {
    key: Buffer.from(key),
    value: Buffer.alloc(0),
    createRevision: modRevision,
    modRevision,
    version: 1,
    lease: 0n,
  };
  return { type: 'put', kv };
}

function told(held: HeldEvents, below: number): readonly unknown[] {
  return held.takeBelow(below).map(({ revision, events }) => [revision, ...events.map(({ kv }) => kv.key.toString())]);
}

test('held events are told in the order of revisions, those of one revision together', () => {
  const held = new HeldEvents();
  held.add(7, [eventOf('a', 7)]);
  held.add(5, [eventOf('b', 5)]);
  held.add(7, [eventOf('c', 7)]);
  held.add(9, [eventOf('d', 9)]);
  expect([held.first, held.size]).toEqual([5, 3]);
  expect(told(held, 9)).toEqual([
    [5, 'b'],
    [7, 'a', 'c'],
  ]);
  expect(told(held, 10)).toEqual([[9, 'd']]);
  expect(held.bytes).toBe(0);
});
