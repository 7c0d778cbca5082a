import { parseOptions } from '@remora/base';
import { lockPrefix } from '@remora/lock';
import { kvRoutingKey } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { nodeSchema } from '../../node-options.ts';
import { firstBorders } from './first-borders.ts';

const given = (flags: Record<string, string>) => parseOptions(nodeSchema, { flags });
const borders = (flags: Record<string, string>): readonly string[] =>
  firstBorders(given(flags)).map((border) => border.toString('hex'));

describe('the first ranges of a cluster', () => {
  test('are one, unless more are asked for', () => {
    expect(borders({})).toEqual([]);
    expect(borders({ preSplitCount: '1' })).toEqual([]);
  });

  test('begin at the keys that are named, in order and once each', () => {
    const keys = ['0x00ff', 'g', 'p'].map((key) => (key === '0x00ff' ? Buffer.of(0, 255) : Buffer.from(key)));
    expect(borders({ preSplit: 'p,g,0x00ff,g' })).toEqual(keys.map((key) => kvRoutingKey(key).toString('hex')));
  });

  test('begin where locks or leases do when these are named', () => {
    expect(borders({ preSplit: 'key:lock:a,lock:orders/,lease:40' })).toEqual(
      [
        Buffer.of(1, 0x40),
        lockPrefix({ namespace: 'default', name: Buffer.from('orders/') }),
        kvRoutingKey(Buffer.from('lock:a')),
      ].map((key) => key.toString('hex')),
    );
  });

  test('have equal parts of all keys when they are only counted', () => {
    expect(borders({ preSplitCount: '4' })).toEqual(['034000', '038000', '03c000']);
    expect(new Set(borders({ preSplitCount: '1000' })).size).toBe(999);
  });

  test.each([
    { flags: { preSplit: '0x0' }, says: 'pairs of hex digits' },
    { flags: { preSplit: 'lease:4' }, says: 'pairs of hex digits' },
    { flags: { preSplit: '-' }, says: 'pairs of hex digits' },
    { flags: { preSplit: 'raw:0901' }, says: 'pairs of hex digits' },
    { flags: { preSplit: 'g', preSplitCount: '2' }, says: 'not be given together' },
    { flags: { preSplitCount: '10001' }, says: '10000' },
  ])('are refused when they are named badly: $flags', ({ flags, says }) => {
    expect(() => given(flags as Record<string, string>)).toThrow(says);
  });
});
