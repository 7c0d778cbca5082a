import { utf8 } from '@remora/base';
import type { LockNotice, LockResult } from '@remora/lock';
import { expect, test } from 'vitest';
import { GrantWatches } from './grant-watches.ts';

const LOCK = { namespace: 'n', name: utf8('l') };
const OTHER = { namespace: 'n', name: utf8('l2') };
const owner = { session: { lease: 1n, incarnation: 2 }, token: 't' };

const QUESTION = { version: 5, known: undefined };

const granted = (version: number): LockResult => ({ type: 'granted', version, depth: 1, lockTimeMs: 0 });

interface Row {
  readonly name: string;
  /** Whether the grant is the current one still, or one of those. */
  readonly current?: true;
  readonly notice: Partial<LockNotice> & { readonly result: LockResult };
  readonly answered: readonly number[];
}

const rows: readonly Row[] = [
  {
    name: 'a forced release ends the grant',
    notice: { result: { type: 'released', depth: 0, version: 5 } },
    answered: [5],
  },
  { name: 'a grant to the next one ends those before', notice: { result: granted(6) }, answered: [5] },
  { name: 'news of the grant itself ends nothing', current: true, notice: { result: granted(5) }, answered: [] },
  { name: 'nor does a grant to one who shares it', current: true, notice: { result: granted(6) }, answered: [] },
  { name: 'nor does news of another lock', notice: { lock: OTHER, result: granted(6) }, answered: [] },
  {
    name: 'nor what a waiter is told',
    notice: { result: { type: 'refused', code: 'LOCK_TIMEOUT', message: '' } },
    answered: [],
  },
];

test.each(rows)('$name', ({ notice, answered, current = false }) => {
  const watches = new GrantWatches(() => (current ? undefined : 'ended'));
  const got: number[] = [];
  watches.add(LOCK, QUESTION, () => got.push(5));
  watches.notify({ lock: LOCK, owner, ...notice });
  watches.notify({ lock: LOCK, owner, ...notice });
  expect(got).toEqual(answered);
});

test('a question that was taken back is not answered, and others of the lock are', () => {
  const watches = new GrantWatches(() => 'ended');
  const got: string[] = [];
  const remove = watches.add(LOCK, QUESTION, () => got.push('first'));
  watches.add(LOCK, QUESTION, () => got.push('second'));
  remove();
  watches.notify({ lock: LOCK, owner, result: granted(6) });
  expect(got).toEqual(['second']);
});

test('a holder is told that it is asked to let go', () => {
  const revocation = { revision: 9, version: 9, by: 'ops', reason: '', untilMs: 50, sinceMs: 1 };
  const watches = new GrantWatches((_lock, { known }) => (known === 0 ? revocation : undefined));
  const got: unknown[] = [];
  watches.add(LOCK, { version: 5, known: 0 }, (news) => got.push(news));
  watches.add(LOCK, { version: 5, known: 9 }, (news) => got.push(news));
  watches.add(LOCK, QUESTION, (news) => got.push(news));
  watches.notify({ lock: LOCK, owner, result: { type: 'revoking', version: 9 } });
  expect(got).toEqual([revocation]);
});
