import { createMetrics } from '@remora/base/node';
import { ManualClock } from '@remora/base/testing';
import { MINUTE_MS, type NodeRates } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { MinuteReporter } from './minute-reporter.ts';
import { quantile } from './quantile.ts';
import { RateMeter } from './rate-meter.ts';

class Bed {
  readonly clock = new ManualClock();
  readonly metrics = createMetrics();
  readonly requests = this.metrics.histogram({
    ...{ name: 'remora_request_seconds', help: 'R.', labels: ['kind'], buckets: [0.001, 0.01, 0.1] },
  });
  readonly syncs = this.metrics.histogram({ name: 'remora_log_sync_seconds', help: 'S.', buckets: [0.001, 0.01] });
  load: number[] = [];
  readonly reporter: MinuteReporter;

  constructor() {
    this.clock.advance(MINUTE_MS - (this.clock.wallMs() % MINUTE_MS));
    const meter = new RateMeter({ clock: this.clock, reading: (name) => this.metrics.reading(name) });
    this.reporter = new MinuteReporter({
      ...{ clock: this.clock, meter },
      heat: () => (this.load.length === 0 ? undefined : { borders: [], values: this.load.splice(0) }),
    });
  }

  get minute(): number {
    return Math.floor(this.clock.wallMs() / MINUTE_MS);
  }

  count(kind: string, times: number, seconds = 0.005): void {
    this.requests.labels(kind).observe(seconds, times);
  }
}

describe("a node's minute", () => {
  test('has the rates of its requests by sort, and quantiles of what was counted in it alone', () => {
    const bed = new Bed();
    bed.count('range', 600);
    bed.clock.advance(MINUTE_MS);
    expect(bed.reporter.forHeartbeat(true).minute?.rates.readsPerS).toBe(10);
    bed.count('range', 120);
    bed.count('put', 60, 0.05);
    bed.count('acquire', 30);
    bed.count('leaseKeepAlive', 30);
    bed.count('recall', 60, 0.05);
    bed.syncs.observe(0.5);
    bed.clock.advance(MINUTE_MS);
    const { minute, rates } = bed.reporter.forHeartbeat(true).minute ?? {};
    expect(minute).toBe(bed.minute - 1);
    const { p50Ms, p99Ms, ...others } = rates as NodeRates;
    expect(others).toEqual({ requestsPerS: 5, readsPerS: 2, writesPerS: 1, locksPerS: 1, fsyncP99Ms: 10 });
    expect(p50Ms).toBeCloseTo(1 + (9 * 150) / 180, 5);
    expect(p99Ms).toBeCloseTo(10 + (90 * 117) / 120, 5);
  });

  test('is sent until a heartbeat with it was answered, and its load is not lost (MN2)', () => {
    const bed = new Bed();
    bed.load = [7];
    expect(bed.reporter.forHeartbeat(true)).toEqual({});
    bed.clock.advance(MINUTE_MS);
    const sent = bed.reporter.forHeartbeat(true);
    expect(sent.minute?.heat?.values).toEqual([7]);
    expect(bed.reporter.forHeartbeat(false)).toEqual(sent);
    expect(bed.reporter.forHeartbeat(true)).toEqual({});
    bed.clock.advance(MINUTE_MS);
    bed.reporter.forHeartbeat(false);
    bed.clock.advance(MINUTE_MS);
    expect(bed.reporter.forHeartbeat(false).minute?.minute).toBe(bed.minute - 1);
  });

  test('has no rates on a node that counts nothing', () => {
    const clock = new ManualClock();
    const meter = new RateMeter({ clock, reading: () => undefined });
    const reporter = new MinuteReporter({ clock, meter, heat: () => undefined });
    clock.advance(MINUTE_MS);
    expect(reporter.forHeartbeat(true).minute?.rates).toEqual({});
    expect(reporter.now().rates).toEqual({});
  });
});

test('what happens now covers the last seconds, for several callers (MN3)', () => {
  const bed = new Bed();
  bed.count('range', 1_000);
  bed.clock.advance(20_000);
  expect(bed.reporter.now()).toMatchObject({ spanMs: 20_000, rates: { readsPerS: 50 } });
  for (let second = 0; second < 8; second++) {
    bed.count('range', 8);
    bed.clock.advance(500);
    bed.reporter.now();
    bed.clock.advance(500);
    const { spanMs, rates } = bed.reporter.now();
    expect(spanMs).toBeGreaterThanOrEqual(900);
    expect(spanMs).toBeLessThanOrEqual(5_000);
    expect(rates.readsPerS).toBe(8);
  }
});

test.each([
  { name: 'nothing counted', q: 0.5, counts: [0, 0, 0], expect: undefined },
  { name: 'one bucket', q: 0.5, counts: [10, 0, 0], expect: 0.5 },
  { name: 'the second one', q: 0.75, counts: [5, 5, 0], expect: 5.5 },
  { name: 'above all bounds', q: 0.99, counts: [1, 0, 9], expect: 10 },
])('a quantile of $name', ({ q, counts, expect: wanted }) => {
  const value = quantile(q, [1, 10], counts);
  if (wanted === undefined) expect(value).toBeUndefined();
  else expect(value).toBeCloseTo(wanted, 9);
});
