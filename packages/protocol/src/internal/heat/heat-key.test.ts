import { binaryString } from '@remora/base';
import { lockPrefix } from '@remora/lock';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { kvRoutingKey, LEASE_SPACE } from '../descriptor.ts';
import { routingKeyText } from '../routing-key-text.ts';
import { HEAT_BORDER_BYTES_MAX, heatBorder, heatBorderAfter } from './heat-key.ts';

const bytes = (maxLength: number) =>
  fc.array(fc.constantFrom(0, 1, 97, 254, 255), { minLength: 1, maxLength }).map((a) => Uint8Array.from(a));
const key = fc.oneof(
  bytes(120).map(kvRoutingKey),
  fc.record({ namespace: fc.constantFrom('a', 'ä', 'n'.repeat(70)), name: bytes(120) }).map((lock) => lockPrefix(lock)),
  fc.bigInt({ min: 1n, max: 2n ** 62n }).map((id) => {
    const lease = Buffer.alloc(9, LEASE_SPACE);
    lease.writeBigInt64BE(id, 1);
    return lease;
  }),
);

describe('a border', () => {
  test('is short, and not behind its key', () => {
    fc.assert(
      fc.property(key, (each) => {
        const border = heatBorder(each);
        expect(border.length).toBeLessThanOrEqual(HEAT_BORDER_BYTES_MAX);
        expect(border <= binaryString(each)).toBe(true);
        expect(heatBorderAfter(border).length).toBeLessThanOrEqual(HEAT_BORDER_BYTES_MAX);
        expect(heatBorderAfter(border) > border).toBe(true);
      }),
    );
  });

  test('keeps the order of keys, and the one behind it is not behind another key', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        const [x, y] = [heatBorder(a), heatBorder(b)];
        if (binaryString(a) < binaryString(b)) expect(x <= y).toBe(true);
        if (x < y) expect(heatBorderAfter(x) <= y).toBe(true);
      }),
    );
  });

  test.each([
    [kvRoutingKey(Buffer.from('orders/42')), 'key:orders/42', 'key:orders/42\\x00'],
    [lockPrefix({ namespace: 'default', name: Buffer.from('x') }), 'lock:x', 'lock:x\\x00'],
    [
      lockPrefix({ namespace: 'jobs', name: Buffer.from('y'.repeat(90)) }),
      `lock@jobs:${'y'.repeat(54)}`,
      `lock@jobs:${'y'.repeat(54)}\\x00`,
    ],
    [Buffer.from('010000000000000a09', 'hex'), 'lease:0000000000000a09', 'lease:0000000000000a0a'],
  ])('of a key, a lock and a lease has a text that people read', (each, text, after) => {
    const border = heatBorder(each);
    expect(routingKeyText(Buffer.from(border, 'latin1'))).toBe(text);
    expect(routingKeyText(Buffer.from(heatBorderAfter(border), 'latin1'))).toBe(after);
  });
});
