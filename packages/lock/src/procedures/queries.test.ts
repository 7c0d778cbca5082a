import { utf8 } from '@remora/base';
import { describe, expect, it } from 'vitest';
import { MemoryView } from '../../test/memory-view.ts';
import {
  type AcquireAs,
  applyLockCommand,
  type LockId,
  type LockQuery,
  ownerId,
  queryLocks,
  type SessionRef,
} from '../index.ts';
import { LIST_OWNERS_MAX, SEARCH_LOOKS_MAX } from '../limits.ts';

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

function take(view: MemoryView, namespace: string, name: Uint8Array, as?: AcquireAs): void {
  view.revision += 1;
  const asked = as === undefined ? {} : { as, attempt: 1 };
  applyLockCommand(view, {
    ...{ type: 'acquire', lock: { namespace, name }, owner: { session: SESSION, token: 't' }, wait: true },
    ...{ waitUntilMs: 0, deadlineMs: view.timeMs + 5_000, depthMax: 1, data: utf8(''), ...asked },
  });
}

type Search = Extract<LockQuery, { readonly type: 'search' }>;

/** The names of one page, and where it goes on. */
function searched(view: MemoryView, more: Partial<Search>): { names: string[]; next: string | undefined } {
  const all = { namespace: 'n', prefix: utf8(''), after: utf8(''), limit: 1_000, contains: utf8('') };
  const result = queryLocks(view, { type: 'search', ...all, ...more });
  if (result.type !== 'search') throw new Error('a search');
  const next = result.next && Buffer.from(result.next).toString();
  return { names: result.locks.map(({ lock }) => Buffer.from(lock.name).toString()), next };
}

describe('a search', () => {
  it('finds the locks whose names have a part, bytes that are no text included', () => {
    const view = new MemoryView();
    view.begin(SESSION);
    for (const name of ['db/1', 'db/12', 'web/1', '1']) take(view, 'n', utf8(name));
    take(view, 'n', Buffer.of(0, 0xff, 0x31, 0xfe));
    expect(searched(view, { contains: utf8('/1') }).names).toEqual(['db/1', 'db/12', 'web/1']);
    expect(searched(view, { contains: utf8('1'), prefix: utf8('db/') }).names).toEqual(['db/1', 'db/12']);
    expect(searched(view, { contains: utf8('1'), after: utf8('db/1') }).names).toEqual(['db/12', 'web/1']);
    expect(searched(view, { contains: Buffer.of(0xff, 0x31) }).names).toHaveLength(1);
    expect(searched(view, { contains: utf8('1'), limit: 2 })).toEqual({ names: [expect.any(String), '1'], next: '1' });
    expect(searched(view, { namespace: 'm' }).names).toEqual([]);
  });

  it('tells kinds apart; a barrier is a lock at which somebody waits to pass', () => {
    const view = new MemoryView();
    view.begin(SESSION);
    take(view, 'n', utf8('alone'));
    take(view, 'n', utf8('reads'), { type: 'shared' });
    take(view, 'n', utf8('permits'), { type: 'permits', permits: 1, capacity: 2 });
    take(view, 'n', utf8('gate'));
    view.revision += 1;
    applyLockCommand(view, {
      ...{ type: 'acquire', lock: { namespace: 'n', name: utf8('gate') }, wait: true, waitUntilMs: 0, depthMax: 1 },
      ...{ owner: { session: SESSION, token: 'p' }, deadlineMs: view.timeMs + 5_000, data: utf8(''), attempt: 1 },
      as: { type: 'pass' },
    });
    const kinds = (['exclusive', 'shared', 'semaphore', 'barrier'] as const).map(
      (kind) => searched(view, { kind }).names,
    );
    expect(kinds).toEqual([['alone', 'gate'], ['reads'], ['permits'], ['gate']]);
  });

  it('looks at a bounded number of locks, and says where to go on', () => {
    const view = new MemoryView();
    view.begin(SESSION);
    for (let i = 0; i <= SEARCH_LOOKS_MAX; i++) take(view, 'n', utf8(`l${String(i).padStart(6, '0')}`));
    const first = searched(view, { contains: utf8(`${SEARCH_LOOKS_MAX}`) });
    expect(first).toEqual({ names: [], next: `l${String(SEARCH_LOOKS_MAX - 1).padStart(6, '0')}` });
    const rest = searched(view, { contains: utf8(`${SEARCH_LOOKS_MAX}`), after: utf8(first.next ?? '') });
    expect(rest).toEqual({ names: [`l${String(SEARCH_LOOKS_MAX).padStart(6, '0')}`], next: undefined });
  });
});

it('namespaces are listed by their keys, whatever they are called and however many locks they have', () => {
  const view = new MemoryView();
  view.begin(SESSION);
  const names = ['b', 'a', 'zz', '__proto__', '\u202Ex', 'longer'];
  for (const namespace of names) for (const name of ['1', '2']) take(view, namespace, utf8(name));
  const list = (after: string, limit: number) => queryLocks(view, { type: 'namespaces', after, limit });
  // Shorter ones come first: the length stands before the name.
  const ordered = ['a', 'b', 'zz', '\u202Ex', 'longer', '__proto__'];
  expect(list('', 10)).toEqual({ type: 'namespaces', namespaces: ordered, more: false });
  expect(list('', 2)).toEqual({ type: 'namespaces', namespaces: ['a', 'b'], more: true });
  expect(list('b', 2)).toEqual({ type: 'namespaces', namespaces: ['zz', '\u202Ex'], more: true });
  expect(list('c', 10)).toMatchObject({ namespaces: ordered.slice(2), more: false });
});
