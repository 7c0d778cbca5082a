import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { rebalanceText, spanOf } from './spread.ts';

const key = (text: string) => kvRoutingKey(Buffer.from(text));
const NONE = Buffer.of();

describe('which ranges are scattered', () => {
  test.each([
    { flags: { all: true as const }, span: { start: NONE, end: NONE } },
    { flags: { prefix: 'orders/' }, span: { start: key('orders/'), end: key('orders0') } },
    { flags: { prefix: '0xff' }, span: { start: Buffer.of(3, 255), end: Buffer.of(4) } },
    { flags: { from: 'a', to: 'b' }, span: { start: key('a'), end: key('b') } },
    { flags: { from: 'a' }, span: { start: key('a'), end: NONE } },
    { flags: { to: 'b' }, span: { start: NONE, end: key('b') } },
  ])('$flags', ({ flags, span }) => {
    const { start, end } = spanOf(flags);
    expect([Buffer.from(start), Buffer.from(end)]).toEqual([span.start, span.end]);
  });

  test.each([
    { flags: {}, says: 'select the ranges in exactly one way' },
    { flags: { all: true as const, prefix: 'a' }, says: 'select the ranges in exactly one way' },
    { flags: { prefix: 'a', to: 'b' }, says: 'select the ranges in exactly one way' },
    { flags: { from: 'b', to: 'b' }, says: '--to must be greater than --from' },
  ])('is refused: $flags', ({ flags, says }) => {
    expect(() => spanOf(flags)).toThrow(says);
  });
});

test('the plan of a rebalance is a table of changes, and what each scheduler says', () => {
  const schedulers = [
    { name: 'bytes', description: '', pausedMs: -1, last: 'bytes are spread evenly', settings: ['bytes-gap-min'] },
  ];
  const change = { rangeId: 2, kind: 'balanceLeaders', reason: 'n1 leads more', steps: ['transfer the leader'] };
  expect(rebalanceText({ changes: [change], schedulers }, true)).toBe(
    [
      'would start: 1 change',
      '',
      'RANGE  KIND            STEPS                WHY',
      '2      balanceLeaders  transfer the leader  n1 leads more',
      '',
      'SCHEDULER  SAYS',
      'bytes      bytes are spread evenly',
    ].join('\n'),
  );
  expect(rebalanceText({ changes: [], schedulers }, false)).toMatch(/^nothing to do\n/);
});
