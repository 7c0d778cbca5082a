import { silentLogger } from '@remora/base';
import type { OrderResult, RangeDescriptor, RangeInstruction, RangeReport } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { RangeOrders } from './range-orders.ts';

const RANGE: RangeDescriptor = {
  ...{ rangeId: 2, start: new Uint8Array(0), end: new Uint8Array(0), revisionSource: 'range' },
  epoch: { confVersion: 4, version: 2 },
  replicas: [],
};
const LEAD = {
  ...{ keys: 0, logEntries: 0, joint: false, changePending: false, peers: [], sizeRemark: '' },
  ...{ readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 },
};
const REPORT: RangeReport = {
  ...{ rangeId: 2, replicaId: 11, epoch: RANGE.epoch, term: 3, applied: 9, bytes: 0, silent: false },
  lead: LEAD,
};
const TRANSFER: RangeInstruction = { type: 'transferLeader', replicaId: 12 };

function directed() {
  const orders = new RangeOrders(silentLogger);
  const ended: [number, RangeInstruction, OrderResult][] = [];
  orders.termBegan(3);
  orders.directBy({
    reported: () => TRANSFER,
    ended: (...how) => void ended.push(how),
  });
  return { orders, ended };
}

describe('orders to the leaders of ranges', () => {
  test('nobody directs: nobody is told anything', () => {
    expect(new RangeOrders(silentLogger).reported(RANGE, REPORT)).toBeUndefined();
  });

  test('go back with the answer to a report, for the membership that it shows', () => {
    const { orders, ended } = directed();
    const order = orders.reported(RANGE, REPORT);
    expect(order).toMatchObject({ rangeId: 2, confVersion: 4, instruction: TRANSFER });
    const result = { orderId: order?.orderId ?? 0, outcome: 'done', reason: '' } as const;
    orders.ended(result);
    orders.ended(result); // repeated
    expect(ended).toEqual([[2, TRANSFER, result]]);
  });

  const silent: readonly { name: string; report: Partial<RangeReport> }[] = [
    { name: 'does not lead', report: { lead: undefined } },
    { name: 'is behind in its membership', report: { epoch: { confVersion: 3, version: 2 } } },
    { name: 'is ahead in its membership', report: { epoch: { confVersion: 5, version: 2 } } },
    { name: 'has other bounds', report: { epoch: { confVersion: 4, version: 1 } } },
  ];
  test.each(silent)('a replica that $name gets none', ({ report }) => {
    expect(directed().orders.reported(RANGE, { ...REPORT, ...report })).toBeUndefined();
  });

  test('only the last one of a range counts, and none of an earlier term', () => {
    const { orders, ended } = directed();
    const ids = [1, 2].map(() => orders.reported(RANGE, REPORT)?.orderId ?? 0);
    for (const orderId of ids) orders.ended({ orderId, outcome: 'refused', reason: 'late' });
    expect(ended.map(([, , { orderId }]) => orderId)).toEqual([ids[1]]);
    const last = orders.reported(RANGE, REPORT)?.orderId ?? 0;
    orders.termBegan(4);
    expect(orders.reported(RANGE, REPORT)?.orderId).not.toBe(last);
    orders.ended({ orderId: last, outcome: 'done', reason: '' });
    expect(ended).toHaveLength(1);
  });
});
