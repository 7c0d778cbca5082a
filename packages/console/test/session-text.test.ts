import { describe, expect, test } from 'vitest';
import { cursorBefore, endingText, heartbeatAgeMs, isSilent } from '../src/logic/session-text.ts';

describe('what a session loses when it is ended', () => {
  test.each([
    { holds: 0, waits: 0, hasMore: false, expected: 'It holds no lock.' },
    { holds: 1, waits: 0, hasMore: false, expected: 'It holds 1 lock, released at once when it ends.' },
    {
      ...{ holds: 25, waits: 2, hasMore: false },
      expected: 'It holds 25 locks, released at once when it ends. It also loses its place in 2 queues.',
    },
    {
      holds: 1_000,
      waits: 0,
      hasMore: true,
      expected: 'It holds at least 1,000 locks, released at once when it ends.',
    },
  ])('$holds held, $waits awaited', ({ expected, ...locks }) => {
    expect(endingText(locks)).toBe(expected);
  });
});

test.each([
  { session: '1a.7', expected: '19.0' },
  { session: 'ffffffffffffffff.12', expected: 'fffffffffffffffe.0' },
  { session: '1000000000000000.1', expected: 'fffffffffffffff.0' },
  { session: '1.1', expected: undefined },
  { session: 'no session', expected: undefined },
])('a list that begins with $session goes on after $expected', ({ session, expected }) => {
  expect(cursorBefore(session)).toBe(expected);
});

describe('the last heartbeat', () => {
  test('is as old as the part of the TTL that is gone', () => {
    expect(heartbeatAgeMs({ ttlMs: 30_000, remainingMs: 21_000 })).toBe(9_000);
    expect(heartbeatAgeMs({ ttlMs: 30_000, remainingMs: 30_001 })).toBe(0);
  });

  test.each([
    { remainingMs: 30_000, expected: false },
    { remainingMs: 20_000, expected: false },
    { remainingMs: 15_000, expected: false },
    { remainingMs: 14_999, expected: true },
    { remainingMs: 0, expected: true },
  ])('with $remainingMs ms of 30 s left, the session is silent: $expected', ({ remainingMs, expected }) => {
    expect(isSilent({ ttlMs: 30_000, remainingMs })).toBe(expected);
  });
});
