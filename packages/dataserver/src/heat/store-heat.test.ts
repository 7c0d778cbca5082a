import { SeededRandom } from '@remora/base';
import { HEAT_COLUMNS_MAX, type HeatColumns, kvRoutingKey, MEASURES } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { range as rangeOp } from '../../test/support/state-bed.ts';
import { RANGE_COLUMNS_MAX } from './range-heat.ts';
import type { KeyedRequest } from './sampled-load.ts';
import { StoreHeat } from './store-heat.ts';

const reading = (key: string): KeyedRequest => ({
  body: { kind: 'query', query: { type: 'range', op: rangeOp(key), serializable: false }, notBefore: 0 },
});
const KEYLESS: KeyedRequest = { body: { kind: 'query', query: { type: 'status' }, notBefore: 0 } };
const span = (start: string, end: string) => ({
  start: kvRoutingKey(Buffer.from(start)),
  end: kvRoutingKey(Buffer.from(end)),
});

interface Column {
  readonly from: string;
  readonly reads: number;
  readonly readBytes: number;
  readonly writes: number;
}

function columnsOf(heat: HeatColumns | undefined): readonly Column[] {
  return (heat?.borders ?? []).map((border, i) => ({
    from: Buffer.from(border.subarray(1)).toString('latin1'),
    reads: heat?.values[i * MEASURES] ?? 0,
    readBytes: heat?.values[i * MEASURES + 1] ?? 0,
    writes: heat?.values[i * MEASURES + 2] ?? 0,
  }));
}

const sum = (columns: readonly Column[], of: 'reads' | 'readBytes' | 'writes') =>
  columns.reduce((total, column) => total + column[of], 0);

describe("a node's load by key", () => {
  test('has all requests and bytes, however few keys are sampled (SL1, SL3)', () => {
    const store = new StoreHeat();
    const range = store.ofRange(() => span('a', 'z'));
    const random = new SeededRandom(7);
    let bytes = 0;
    for (let i = 0; i < 10_007; i++) {
      const size = random.int(900);
      range.read(reading(`k${random.int(100_000)}`), size);
      bytes += size;
      if (i % 3 === 0) range.wrote(reading(`w${random.int(100_000)}`), 11);
    }
    const columns = columnsOf(store.take());
    expect(columns.length).toBeLessThanOrEqual(RANGE_COLUMNS_MAX + 2);
    expect([sum(columns, 'reads'), sum(columns, 'readBytes'), sum(columns, 'writes')]).toEqual([10_007, bytes, 3_336]);
    expect(store.take()).toBeUndefined();
  });

  test('shows where the load of one range lies, also when clients take each key in turn (SL2)', () => {
    const store = new StoreHeat();
    const range = store.ofRange(() => span('a', 'z'));
    // Nine in ten reads go to the keys of m, in turn; the others are spread.
    for (let i = 0; i < 20_000; i++) range.read(reading(i % 10 === 0 ? `b${i % 997}` : `m${i % 64}`), 1);
    const columns = columnsOf(store.take());
    const inM = columns.filter(({ from }) => from >= 'm' && from < 'n').reduce((total, { reads }) => total + reads, 0);
    expect(inM / 20_000).toBeGreaterThan(0.8);
    expect(inM / 20_000).toBeLessThan(0.97);
  });

  test('gives a hot key a column of its own (RT1)', () => {
    const store = new StoreHeat();
    const range = store.ofRange(() => span('a', 'z'));
    const random = new SeededRandom(3);
    for (let i = 0; i < 5_000; i++) range.read(reading(i % 2 === 0 ? 'hot' : `k${random.int(10_000)}`), 1);
    const columns = columnsOf(store.take());
    const at = columns.findIndex(({ from }) => from === 'hot');
    expect(columns[at + 1]?.from).toBe('hot\0');
    const share = (columns[at]?.reads ?? 0) / 5_000;
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.7);
  });

  test('counts requests without a key for their whole range, and ends where the range does (RT2)', () => {
    const store = new StoreHeat();
    const range = store.ofRange(() => span('c', 'f'));
    range.read(KEYLESS, 5);
    range.wrote(reading('d'), 9);
    expect(columnsOf(store.take())).toEqual([
      { from: '', reads: 0, readBytes: 0, writes: 0 },
      { from: 'c', reads: 1, readBytes: 5, writes: 0 },
      { from: 'd', reads: 0, readBytes: 0, writes: 1 },
      { from: 'f', reads: 0, readBytes: 0, writes: 0 },
    ]);
  });

  test('has a bounded number of columns and samples, however many ranges have load (SH1, SH2)', () => {
    const store = new StoreHeat();
    const name = (i: number): string => `r${String(i).padStart(5, '0')}`;
    const ranges = Array.from({ length: 9_000 }, (_, i) => store.ofRange(() => span(name(i), name(i + 1))));
    for (let n = 0; n < 20; n++) {
      ranges.forEach((range, i) => {
        range.read(reading(`${name(i)}/${n}`), 1);
      });
    }
    const columns = columnsOf(store.take());
    expect(columns.length).toBeLessThanOrEqual(HEAT_COLUMNS_MAX);
    expect(columns.length).toBeGreaterThan(HEAT_COLUMNS_MAX / 2);
    expect(sum(columns, 'reads')).toBe(180_000);
  });
});
