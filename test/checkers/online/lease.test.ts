import { describe, expect, it } from 'vitest';
import { LeaseCheck, type LeaseEvent, runCheck } from '../index.ts';

const OPTIONS = { driftPerMille: 50, endsWithinMs: 500 };
const L = 'lease 7/1';

const granted = (sentMs: number, ttlMs = 1_000): LeaseEvent => ({ type: 'granted', lease: L, ttlMs, sentMs });
const renewed = (sentMs: number): LeaseEvent => ({ type: 'renewed', lease: L, sentMs });
const tried = (sentMs: number): LeaseEvent => ({ type: 'tried', lease: L, sentMs });
const used = (atMs: number): LeaseEvent => ({ type: 'used', lease: L, atMs });
const ended = (atMs: number): LeaseEvent => ({ type: 'ended', lease: L, atMs });
const revoked = (atMs: number): LeaseEvent => ({ type: 'revoked', lease: L, atMs });
const settled = (atMs: number): LeaseEvent => ({ type: 'settled', atMs });
const put = (key: string, lease?: string): LeaseEvent => ({ type: 'put', key, lease });

interface Row {
  readonly name: string;
  readonly events: readonly LeaseEvent[];
  readonly expect: readonly string[];
}

const rows: readonly Row[] = [
  {
    name: 'a lease that is renewed, used, and ends when it is renewed no more',
    events: [granted(0), used(500), renewed(600), tried(1_000), used(1_400), ended(1_600), settled(9_000)],
    expect: [],
  },
  {
    name: 'an end as much too early as clocks may drift',
    events: [granted(0), ended(950)],
    expect: [],
  },
  { name: 'a revoked lease ends early', events: [granted(0), revoked(10), ended(20), settled(9_000)], expect: [] },
  { name: 'an early end', events: [granted(0), ended(949)], expect: ['lease: not early'] },
  {
    name: 'an end before the revocation was asked for',
    events: [granted(0), revoked(30), ended(20)],
    expect: ['lease: not early'],
  },
  {
    name: 'an early end that is known before the grant',
    events: [ended(500), granted(0)],
    expect: ['lease: not early'],
  },
  {
    name: 'an early end, as an acknowledgement shows that comes later',
    events: [granted(0), ended(1_000), renewed(900)],
    expect: ['lease: not early'],
  },
  {
    name: 'a keep-alive acknowledged after the end',
    events: [granted(0), ended(1_000), renewed(1_001)],
    expect: ['lease: over is over'],
  },
  {
    name: 'an end that is found later to have been before a keep-alive',
    events: [granted(0), renewed(1_100), ended(1_000)],
    expect: ['lease: over is over'],
  },
  {
    name: 'use of a lease that is over',
    events: [granted(0), ended(1_000), used(1_001)],
    expect: ['lease: the client knows first'],
  },
  {
    name: 'use of a lease that was over, as is found later',
    events: [granted(0), used(1_001), ended(1_000)],
    expect: ['lease: the client knows first'],
  },
  {
    name: 'a lease that does not end, told once',
    events: [granted(0), tried(500), settled(2_050), settled(2_051), settled(2_052)],
    expect: ['lease: ends'],
  },
  { name: 'a revocation without effect', events: [granted(0), revoked(10), settled(511)], expect: ['lease: ends'] },
  {
    name: 'keys that go with their lease, were put again, or have none',
    events: [
      granted(0),
      put('a', L),
      put('b', L),
      put('c'),
      put('b'),
      ended(1_000),
      { type: 'deleted', key: 'a' },
      settled(9_000),
    ],
    expect: [],
  },
  {
    name: 'an orphan',
    events: [granted(0), put('a', L), ended(1_000), settled(1_501)],
    expect: ['lease: no orphan'],
  },
  {
    name: 'an orphan of a lease whose grant nobody knows of, put after its end',
    events: [ended(1_000), put('a', L), settled(1_501)],
    expect: ['lease: no orphan'],
  },
];

describe('lease check', () => {
  it.each(rows)('$name: $expect', ({ events, expect: expected }) => {
    const found = runCheck(new LeaseCheck(OPTIONS), events);
    expect(found.map(({ property }) => property)).toEqual(expected);
  });
});
