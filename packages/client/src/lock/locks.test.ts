import { expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { Locks } from './locks.ts';

test('a page of locks has what it is said to have, and nothing of how it was answered', async () => {
  const result = { type: 'lock', result: { type: 'list', locks: [], more: false } };
  const requester = { query: () => Promise.resolve({ result }) } as unknown as Requester;
  expect(await new Locks(requester, 1_000).list().page()).toEqual({ items: [], cursor: undefined });
});
