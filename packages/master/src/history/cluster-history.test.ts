import {
  HEAT_BORDER_BYTES_MAX,
  HEAT_COLUMNS_MAX,
  HISTORY_MINUTES,
  MEASURES,
  MINUTE_MS,
  type MinuteReport,
  NODE_RATES,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { ClusterHistory, HISTORY_BYTES_MAX } from './cluster-history.ts';

const START = 29_000_000;
/** A moment at which `minute` is the last complete one. */
const endOf = (minute: number): number => (minute + 1) * MINUTE_MS + 900;

const ALL = {
  requestsPerS: 8,
  readsPerS: 5,
  writesPerS: 2,
  locksPerS: 1,
  p50Ms: 1,
  p99Ms: 9,
  fsyncP99Ms: 3,
  commitP99Ms: 4,
};

function report(minute: number, reads: Readonly<Record<string, number>> = {}, rates: MinuteReport['rates'] = ALL) {
  const columns = Object.entries(reads);
  const heat = {
    borders: ['', ...columns.map(([border]) => border)].map((border) => Buffer.from(border, 'latin1')),
    values: [0, 0, 0, 0, ...columns.flatMap(([, value]) => [value, value * 10, 0, 0])],
  };
  return { minute, rates, ...(columns.length > 0 && { heat }) };
}

const readsOf = (history: ClusterHistory, minute: number): Record<string, number> => {
  const heat = history.heat(minute);
  return Object.fromEntries((heat?.borders ?? []).map((border, i) => [border, heat?.values[i * MEASURES] ?? 0]));
};

describe('the history', () => {
  test('adds the load that several nodes report for one minute, and each counts once (CH3)', () => {
    const history = new ClusterHistory();
    const now = endOf(START);
    history.reported(1, report(START, { b: 4, c: 0 }), now);
    history.reported(2, report(START, { m: 6, n: 0 }), now);
    history.reported(1, report(START, { b: 4, c: 0 }), now + 300);
    expect(readsOf(history, START)).toEqual({ '': 0, b: 4, c: 0, m: 6, n: 0 });
  });

  test('has the rates of each node by minute, without gaps, as far back as it knows', () => {
    const history = new ClusterHistory();
    history.reported(7, report(START, {}, { ...ALL, p99Ms: 12 }), endOf(START));
    history.reported(3, report(START + 2, {}, { requestsPerS: 2.5 }), endOf(START + 2));
    const span = history.span(60, endOf(START + 2));
    expect(span).toEqual({ first: START, count: 3 });
    const [three, seven] = history.activity(span);
    expect([three?.nodeId, seven?.nodeId]).toEqual([3, 7]);
    expect([...(three?.values ?? [])].slice(0, 3)).toEqual([Number.NaN, Number.NaN, 2.5]);
    const p99 = NODE_RATES.indexOf('p99Ms');
    expect([...(seven?.values ?? [])].slice(p99 * 3, p99 * 3 + 3)).toEqual([12, Number.NaN, Number.NaN]);
    expect(history.span(2, endOf(START + 2))).toEqual({ first: START + 1, count: 2 });
    expect(history.activity({ first: START + 1, count: 1 })).toEqual([]);
  });

  test('begins empty with each term (CH1)', () => {
    const history = new ClusterHistory();
    history.reported(1, report(START, { b: 4 }), endOf(START));
    history.termBegan();
    expect(history.stats).toEqual({ bytes: 0, minutes: 0, nodes: 0 });
    expect(history.span(60, endOf(START)).count).toBe(0);
    history.reported(1, report(START, { b: 4 }), endOf(START));
    expect(history.stats.minutes).toBe(1);
  });

  test('puts the reports of a node whose clock is far off into the last complete minute (CH4)', () => {
    const history = new ClusterHistory();
    history.reported(1, report(START - 5_000, { b: 1 }), endOf(START));
    history.reported(2, report(START - 1, { b: 2 }), endOf(START));
    history.reported(3, report(0, { b: 8 }), endOf(START));
    expect([readsOf(history, START).b, readsOf(history, START - 1).b]).toEqual([9, 2]);
  });

  test('forgets what is older than it is long, and what lies ahead after the clock was set back', () => {
    const history = new ClusterHistory();
    for (let i = 0; i < HISTORY_MINUTES + 20; i++) history.reported(1, report(START + i, { b: 1 }), endOf(START + i));
    history.reported(2, report(START + 5, { b: 1 }), endOf(START + 5));
    expect(history.stats.minutes).toBeLessThanOrEqual(HISTORY_MINUTES);
    expect(history.heat(START + HISTORY_MINUTES)).toBeUndefined();
    expect(history.heat(START + 5)).toBeDefined();
  });

  test('goes on after the clock leapt ahead by years', () => {
    const history = new ClusterHistory();
    history.reported(1, report(3, { b: 1 }), endOf(3));
    history.reported(1, report(START, { b: 1 }), endOf(START));
    const span = history.span(HISTORY_MINUTES, endOf(START));
    expect(span.count).toBe(HISTORY_MINUTES);
    expect(history.activity(span)[0]?.values.at(span.count - 1)).toBe(ALL.requestsPerS);
    expect(history.activity({ first: span.first, count: HISTORY_MINUTES - 1 })).toEqual([]);
  });
});

/** Columns with the longest borders, different ones in each minute. */
function wide(minute: number): MinuteReport {
  const borders = Array.from({ length: HEAT_COLUMNS_MAX - 1 }, (_, i) =>
    Buffer.from(`${String(i).padStart(6, '0')}-${minute}`.padEnd(HEAT_BORDER_BYTES_MAX, 'x')),
  );
  const values = Array.from({ length: HEAT_COLUMNS_MAX * MEASURES }, () => 1e12);
  return { minute, rates: ALL, heat: { borders: [Buffer.alloc(0), ...borders], values } };
}

test('a full history of the largest cluster has all minutes and stays within its bound (CH2)', () => {
  const history = new ClusterHistory();
  for (let i = 0; i < HISTORY_MINUTES; i++) history.reported(1, wide(START + i), endOf(START + i));
  const last = START + HISTORY_MINUTES - 1;
  for (let node = 2; node <= 1_100; node++) history.reported(node, report(last), endOf(last));
  expect(history.stats.minutes).toBe(HISTORY_MINUTES);
  expect(history.stats.nodes).toBe(1_000);
  expect(history.heat(START)?.borders).toHaveLength(HEAT_COLUMNS_MAX);
  expect(history.stats.bytes).toBeLessThanOrEqual(HISTORY_BYTES_MAX);
  // It is not much smaller either: the sum counts what is there.
  expect(history.stats.bytes).toBeGreaterThan(HISTORY_BYTES_MAX * 0.75);
});

test('when it is full, the oldest minutes of load are dropped for newer ones (CH2)', () => {
  const bytesMax = 400_000;
  const history = new ClusterHistory(bytesMax);
  for (let i = 0; i < 50; i++) {
    history.reported(1, wide(START + i), endOf(START + i));
    expect(history.stats.bytes).toBeLessThanOrEqual(bytesMax);
  }
  expect(history.heat(START + 49)).toBeDefined();
  expect(history.heat(START + 49 - history.stats.minutes)).toBeUndefined();
  expect(history.stats.minutes).toBeGreaterThan(3);
});
