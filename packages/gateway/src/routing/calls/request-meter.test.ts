import { silentLogger } from '@remora/base';
import { createMetrics } from '@remora/base/node';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { RequestMeter } from './request-meter.ts';

const TIMES = {
  ...{ tookMs: 1_234.5, request: 'r', rangeId: 2, node: 3, attempts: 2, searchedMs: 1_000.4, lastAttemptMs: 7.6 },
  code: 'OK',
};

function bed(slowMs = 1_000) {
  const metrics = createMetrics();
  const clock = new ManualClock();
  const lines: (readonly [Readonly<Record<string, unknown>>, string])[] = [];
  const logger = {
    ...silentLogger,
    warn: (fields: Readonly<Record<string, unknown>>, text: string) => lines.push([fields, text]),
  };
  return { metrics, clock, lines, meter: new RequestMeter({ metrics, clock, logger, slowMs }) };
}

test('requests are counted by kind', async () => {
  const { metrics, meter } = bed();
  const key = Buffer.from('k');
  const lock = { namespace: '', name: key };
  const put = {
    type: 'put',
    key,
    value: key,
    lease: 0n,
    prevKv: false,
    ignoreValue: false,
    ignoreLease: false,
  } as const;
  meter.ended({ kind: 'command', command: { type: 'kv', op: put } as never }, 2, 1);
  meter.ended({ kind: 'command', command: { type: 'lock', command: { type: 'forget', lock } } as never }, 2, 1);
  meter.ended({ kind: 'command', command: { type: 'noop' } }, 2, 1);
  meter.ended({ kind: 'query', query: { type: 'status' }, notBefore: 0 }, 30, 1);
  meter.ended({ kind: 'recall', command: { type: 'noop' } }, 2, 1);
  meter.ended(undefined, 20_000, 1);
  const text = await metrics.render();
  const counts = [...text.matchAll(/^remora_request_seconds_count{kind="(\w+)"} (\d+)$/gm)].map(([, kind]) => kind);
  expect(counts.sort()).toEqual(['forget', 'noop', 'put', 'recall', 'status', 'unsent']);
  expect(text).toContain('remora_request_seconds_bucket{le="0.05",kind="status"} 1');
  expect(text).toContain('remora_request_seconds_bucket{le="0.025",kind="status"} 0');
  expect(text).toContain('remora_request_seconds_bucket{le="+Inf",kind="unsent"} 1');
});

test('of each kind of slow requests one line is logged in a minute (RM3)', () => {
  const { clock, lines, meter } = bed();
  const noop = { kind: 'command', command: { type: 'noop' } } as const;
  meter.slow(noop, TIMES);
  meter.slow(noop, TIMES);
  meter.slow(undefined, TIMES);
  clock.advance(60_000);
  meter.slow(noop, TIMES);
  const fields = { ...TIMES, tookMs: 1_235, searchedMs: 1_000, lastAttemptMs: 8 };
  expect(lines).toEqual([
    [{ kind: 'noop', ...fields }, 'a request was slow'],
    [{ kind: 'unsent', ...fields }, 'a request was slow'],
    [{ kind: 'noop', ...fields, unlogged: 1 }, 'a request was slow'],
  ]);
});

test('one of eight usual requests is measured, and counts eight times (RM2)', async () => {
  const { metrics, meter } = bed();
  const weights = Array.from({ length: 24 }, () => meter.weight());
  expect(weights.filter((weight) => weight > 0)).toEqual([8, 8, 8]);
  for (const weight of weights) if (weight > 0) meter.ended(undefined, 500, weight);
  expect(await metrics.render()).toContain('remora_request_seconds_count{kind="unsent"} 24');
  expect(await metrics.render()).toContain('remora_request_seconds_sum{kind="unsent"} 12');
});

test('with 0, no request is slow', () => {
  expect(bed(0).meter.slowMs).toBe(Number.POSITIVE_INFINITY);
});
