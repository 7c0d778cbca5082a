import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { leasePlace, lockPlace } from '../changes/places.ts';
import type { ChangeKind } from '../changes/range-desk.ts';
import type { Operation } from './evidence.ts';
import { Overlaps, type Subject } from './overlaps.ts';

const MS = 1e6;

function operation(w: Operation['w'], q: object, fromMs: number, toMs: number | null, a?: object): Operation {
  const how = toMs === null ? 'unknown' : 'done';
  return { process: 'c1', w, q, t0: fromMs * MS, t1: toMs === null ? null : toMs * MS, how, code: undefined, a };
}

const key = (text: string): string => kvRoutingKey(Buffer.from(text)).toString('hex');
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function changed(change: ChangeKind, start: string, end: string, fromMs: number, toMs: number | null): Operation {
  return operation('changes', { change, spans: [[start, end]] }, fromMs, toMs);
}

/** A split of the range that has the keys from `txn/1/2` on, from 100 to 150 ms. */
const SPLIT = changed('split', key('txn/1/2'), '', 100, 150);

function txn(fromMs: number, toMs: number | null, ...keys: readonly string[]): Operation {
  return operation('txns', { c: 'a', ops: keys.map((k) => ({ k, op: 'get' })) }, fromMs, toMs, { ok: true });
}

function countsOf(...rounds: readonly (readonly Operation[])[]): Readonly<Record<string, string>> {
  const overlaps = new Overlaps();
  for (const [r, operations] of rounds.entries()) overlaps.take({ r, operations, notes: [], events: [] });
  return Object.fromEntries(
    overlaps.all.flatMap(({ change, subject, met, through }) =>
      met + through === 0 ? [] : [[`${change} ${subject}`, `${met} ${through}`]],
    ),
  );
}

describe('a transaction', () => {
  test.each([
    { name: 'amid which the range was split', it: txn(90, 160, 'txn/1/3'), met: '1 1' },
    { name: 'that ended during the split', it: txn(90, 120, 'txn/1/3'), met: '1 0' },
    { name: 'that began during the split', it: txn(120, 160, 'txn/1/3'), met: '1 0' },
    { name: 'that ended before', it: txn(10, 99, 'txn/1/3'), met: undefined },
    { name: 'that began behind it', it: txn(151, 200, 'txn/1/3'), met: undefined },
    { name: 'of keys elsewhere', it: txn(90, 160, 'txn/1/1'), met: undefined },
    { name: 'one of whose keys is there', it: txn(90, 160, 'txn/1/1', 'txn/1/2'), met: '1 1' },
    { name: 'that was never answered', it: txn(90, null, 'txn/1/3'), met: undefined },
  ])('$name', ({ it, met }) => {
    expect(countsOf([SPLIT, it])['split transaction']).toBe(met);
  });

  test('of the next round counts, too, and a change that did not come to its end does not', () => {
    const begun = changed('move', '', '', 100, null);
    expect(countsOf([SPLIT, begun], [txn(90, 160, 'txn/1/3')])).toEqual({ 'split transaction': '1 1' });
  });
});

test('a watch is where its prefix is', () => {
  const watch = operation('watches', { watch: 'w', from: 1, prefix: 'register/1/' }, 0, 500, { upTo: 9 });
  const amid = changed('merge', key('register/1/3'), key('register/1/4'), 100, 200);
  const beside = changed('merge', key('register/2/'), key('register/3/'), 100, 200);
  expect(countsOf([watch, amid, beside])).toEqual({ 'merge watch': '1 1' });
});

test('a lease is where its record is and where its key is, from its grant to the last that was heard of it', () => {
  const lease = (id: string): readonly Operation[] => [
    operation('leases', { op: 'grant', key: 'lease/1/k' }, 0, 10, { ttlMs: 1_000, id }),
    operation('leases', { op: 'keepAlive', key: 'lease/1/k' }, 290, 300, {}),
  ];
  const { start, end } = leasePlace(7n);
  const record = changed('move', hex(start), hex(end), 100, 200);
  expect(countsOf([record, ...lease('7')])).toEqual({ 'move lease': '1 1' });
  expect(countsOf([record, ...lease('8')])).toEqual({});
  const ofKey = changed('move', key('lease/1/k'), key('lease/1/l'), 250, 400);
  expect(countsOf([ofKey, ...lease('8')])).toEqual({ 'move lease': '1 0' });
});

describe('a waiter counts while another one is known to hold the lock', () => {
  const { start, end } = lockPlace('lock/1/0');
  const held: readonly Operation[] = [
    operation('locks', { c: 'o1', k: 'lock/1/0', op: 'acquire', wait: 0 }, 0, 10, { ok: true, out: 5 }),
    operation('locks', { c: 'o1', k: 'lock/1/0', op: 'release', v: 5 }, 200, 210, { ok: true }),
  ];
  const asks = (wait: number) =>
    operation('locks', { c: 'o2', k: 'lock/1/0', op: 'acquire', wait }, 50, 300, { ok: true, out: 6 });
  const changedAt = (fromMs: number, toMs: number) => changed('transfer', hex(start), hex(end), fromMs, toMs);

  const rows: { name: string; given: readonly Operation[]; counts: Partial<Record<`transfer ${Subject}`, string>> }[] =
    [
      {
        name: 'amid its wait',
        given: [...held, asks(1_000), changedAt(100, 150)],
        counts: { 'transfer waiter': '1 1' },
      },
      { name: 'when nobody holds it any more', given: [...held, asks(1_000), changedAt(220, 250)], counts: {} },
      { name: 'one that does not wait', given: [...held, asks(0), changedAt(100, 150)], counts: {} },
      { name: 'when nobody held it', given: [asks(1_000), changedAt(100, 150)], counts: {} },
    ];
  test.each(rows)('$name', ({ given, counts }) => {
    expect(countsOf(given)).toEqual(counts);
  });
});
