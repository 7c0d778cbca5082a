import { utf8 } from '@remora/base';
import { expect, it } from 'vitest';
import { decodeHead, emptyHead, encodeHead, type Head } from './records.ts';
import { headOf, storedHead } from './stored-head.ts';

function held(data: string): Head {
  const owner = { session: { lease: 7n, incarnation: 3 }, token: 't' };
  const holder = { owner, version: 9, depth: 1, lockTimeMs: 5, data: utf8(data) };
  const numbers = { permits: 0, firstAttempt: 1, attempt: 1, upgradeAttempt: 0 };
  const hold = { holder, mode: 'exclusive', ...numbers, keepData: false, delayMs: 0, delayed: false } as const;
  return { ...emptyHead(), hold };
}

it('a stored head is its bytes to whoever wants those, and a copy to who works with it', () => {
  const head = held('');
  const stored = storedHead(head);
  const taken = headOf(stored);
  taken.waiters = 5;
  taken.hold = undefined;
  expect(headOf(stored)).toEqual(head);
  if (stored instanceof Uint8Array) throw new Error('a head without data waits for its bytes to be wanted');
  expect(stored.encode()).toEqual(encodeHead(head));
  expect(headOf({ encode: () => encodeHead(head) })).toEqual(decodeHead(encodeHead(head)));
});

it('a head with data is stored as bytes of its own', () => {
  const stored = storedHead(held('data'));
  if (!(stored instanceof Uint8Array)) throw new Error('data is not kept as it came');
  expect(stored).toEqual(encodeHead(held('data')));
  expect(headOf(stored)).toEqual(decodeHead(encodeHead(held('data'))));
});
