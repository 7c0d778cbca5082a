import type { LockDetails } from 'remora';
import { expect, test } from 'vitest';
import { jsonLock } from './lock-text.ts';
import { jsonTerms, leftText } from './terms-text.ts';

const CONDITION = { heartbeatMs: 500, serverMisses: 3, holderMisses: 2 };

test.each([
  { name: 'in fractions', given: { ttlMs: 10_000, remainingMs: 8_765.432_1 }, expected: { remainingMs: 8_765 } },
  { name: 'that is over', given: { ttlMs: 10_000, remainingMs: -0.3 }, expected: { remainingMs: 0 } },
  { name: 'with a condition', given: { ttlMs: 10_000, remainingMs: 7, condition: CONDITION }, expected: {} },
])('programs are told a time in whole milliseconds: $name', ({ given, expected }) => {
  expect(jsonTerms(given)).toEqual({ ...given, ...expected });
});

test('so are those of who holds a lock', () => {
  const holder = {
    ...{ owner: { session: { lease: 5n, incarnation: 1 }, token: 't' }, version: 7, depth: 1, lockTimeMs: 0 },
    ...{ data: Buffer.of(), mode: 'exclusive', delayMs: 0, terms: { ttlMs: 10_000, remainingMs: 8_765.4 } },
  };
  const lock = { namespace: 'default', name: Buffer.from('l') };
  const state = { lock, kind: 'exclusive', holders: [holder], waiters: [], passing: 0 } as unknown as LockDetails;
  expect(jsonLock(state).holders).toMatchObject([{ ttlMs: 10_000, remainingMs: 8_765 }]);
});

test.each([
  [17_709.4, '18s'],
  [1_709.4, '1.7s'],
  [-3, '0.0s'],
  [7_100_000, '118m'],
  [Number.MAX_SAFE_INTEGER, 'never ends'],
])('of %d ms that are left people are told %s', (ms, text) => {
  expect(leftText(ms)).toBe(text);
});
