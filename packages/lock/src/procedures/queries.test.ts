import { utf8 } from '@remora/base';
import { expect, it } from 'vitest';
import { MemoryView } from '../../test/memory-view.ts';
import { applyLockCommand, type LockId, ownerId, queryLocks, type SessionRef } from '../index.ts';
import { LIST_OWNERS_MAX } from '../limits.ts';

const LOCK: LockId = { namespace: 'default', name: utf8('orders/42') };
const SESSION: SessionRef = { lease: 1n, incarnation: 7 };

function queue(view: MemoryView, token: string, waitUntilMs: number): void {
  view.revision += 1;
  applyLockCommand(view, {
    ...{ type: 'acquire', lock: LOCK, owner: { session: SESSION, token }, wait: true, waitUntilMs },
    ...{ deadlineMs: view.timeMs + 5_000, depthMax: 1, data: utf8('') },
  });
}

it.each([
  { name: 'behind more than a list names', over: 3 * LIST_OWNERS_MAX, expect: ['a', 'b', 'c'] },
  { name: 'behind as many as a list names', over: LIST_OWNERS_MAX, expect: ['a', 'b', 'c'] },
  { name: 'not behind ever so many, as work is bounded (Q1)', over: 10 * LIST_OWNERS_MAX, expect: [] },
])('who waits is named $name whose wait is over', ({ over, expect: named }) => {
  const view = new MemoryView();
  view.begin(SESSION);
  queue(view, 'holder', 0);
  for (let i = 0; i < over; i++) queue(view, `over${i}`, view.timeMs + 1);
  for (const token of ['a', 'b', 'c']) queue(view, token, 0);
  view.timeMs += 2;
  const about = { namespace: LOCK.namespace, prefix: utf8(''), after: utf8(''), limit: 1 };
  const listed = queryLocks(view, { type: 'list', ...about });
  const state = listed.type === 'list' ? listed.locks[0] : undefined;
  expect(state?.waiters.map(({ owner, position }) => `${position} ${owner.id}`)).toEqual(
    named.map((token, i) => `${i + 1} ${ownerId(token)}`),
  );
});
