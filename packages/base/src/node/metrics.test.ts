import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('what was counted is rendered in the text format of Prometheus', async () => {
  const metrics = createMetrics();
  const requests = metrics.counter({ name: 'remora_requests_total', help: 'Requests.', labels: ['method'] });
  requests.labels('get').inc();
  requests.labels('get').inc(2);
  metrics.gauge({ name: 'remora_open', help: 'Open.' }).set(7);
  const latency = metrics.histogram({ name: 'remora_latency_seconds', help: 'Latency.', buckets: [0.1, 1] });
  latency.observe(0.5);
  const text = await metrics.render();
  expect(text).toContain('# TYPE remora_requests_total counter');
  expect(text).toContain('remora_requests_total{method="get"} 3');
  expect(text).toContain('remora_open 7');
  expect(text).toContain('remora_latency_seconds_bucket{le="0.1"} 0');
  expect(text).toContain('remora_latency_seconds_bucket{le="1"} 1');
  expect(text).toContain('remora_latency_seconds_bucket{le="+Inf"} 1');
  expect(text).toContain('remora_latency_seconds_sum 0.5\nremora_latency_seconds_count 1');
});

test('a histogram counts a value in each bucket that it fits in, per combination of labels', async () => {
  const metrics = createMetrics();
  const held = metrics.histogram({ name: 'held', help: 'Held.', labels: ['kind'], buckets: [1, 10] });
  const shared = held.labels('shared');
  for (const value of [0, 1, 1.5, 10, 11]) shared.observe(value);
  held.labels('shared').observe(100);
  held.labels('"odd"\n').observe(1);
  const text = await metrics.render();
  const lines = text.split('\n').filter((line) => line.includes('shared'));
  expect(lines).toEqual([
    'held_bucket{le="1",kind="shared"} 2',
    'held_bucket{le="10",kind="shared"} 4',
    'held_bucket{le="+Inf",kind="shared"} 6',
    'held_sum{kind="shared"} 123.5',
    'held_count{kind="shared"} 6',
  ]);
  expect(text).toContain('held_count{kind="\\"odd\\"\\n"} 1');
});

test('labels are bound once, all of them, and counters only grow', () => {
  const counter = createMetrics().counter({ name: 'a_total', help: 'A.', labels: ['x', 'y'] });
  expect(() => counter.labels('1')).toThrow('2 labels');
  expect(() => counter.inc()).toThrow('2 labels');
  expect(() => counter.labels('1', '2').labels('3')).toThrow('bound already');
  expect(() => counter.labels('1', '2').inc(-1)).toThrow('only grows');
});

test('asking twice for a metric gives the same one, and refuses another shape (M1)', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'a_total', help: 'A.' }).inc();
  metrics.counter({ name: 'a_total', help: 'A.' }).inc();
  expect(await metrics.render()).toContain('a_total 2');
  expect(() => metrics.gauge({ name: 'a_total', help: 'A.' })).toThrow('M1');
});

test('gauges can be set just before rendering, and registries do not mix', async () => {
  const metrics = createMetrics();
  const gauge = metrics.gauge({ name: 'depth', help: 'Depth.' });
  let depth = 1;
  metrics.onRender(() => gauge.set(depth));
  expect(await metrics.render()).toContain('depth 1');
  depth = 2;
  expect(await metrics.render()).toContain('depth 2');
  expect(await createMetrics().render()).not.toContain('depth');
});

test('the process reports itself only when asked to', async () => {
  expect(await createMetrics({ process: true }).render()).toContain('process_cpu_seconds_total');
  expect(await createMetrics().render()).not.toContain('process_cpu_seconds_total');
});

test('a counter that is kept elsewhere shows its value as a counter', async () => {
  const metrics = createMetrics();
  const syncs = metrics.observedCounter({ name: 'syncs_total', help: 'Syncs.', labels: ['of'] });
  metrics.onRender(() => syncs.labels('log').set(41));
  expect(await metrics.render()).toContain('# TYPE syncs_total counter\nsyncs_total{of="log"} 41');
});

test('a gauge of things that come and go shows those that were set since it was cleared', async () => {
  const metrics = createMetrics();
  const keys = metrics.clearableGauge({ name: 'range_keys', help: 'Keys.', labels: ['range'] });
  keys.labels('1').set(10);
  keys.clear();
  keys.labels('2').set(20);
  expect(await metrics.render()).toContain('# TYPE range_keys gauge\nrange_keys{range="2"} 20');
  expect(await metrics.render()).not.toContain('range="1"');
});

test('what a histogram has counted can be read by its name, per combination of labels', () => {
  const metrics = createMetrics();
  const seconds = metrics.histogram({ name: 'seconds', help: 'Seconds.', labels: ['kind'], buckets: [1, 10] });
  seconds.labels('a').observe(0.5, 3);
  const before = metrics.reading('seconds');
  seconds.labels('b').observe(100);
  seconds.labels('a').observe(5);
  expect(before).toEqual({ bounds: [1, 10], series: [{ labels: { kind: 'a' }, counts: [3, 0, 0] }] });
  expect(metrics.reading('seconds')?.series).toEqual([
    { labels: { kind: 'a' }, counts: [3, 1, 0] },
    { labels: { kind: 'b' }, counts: [0, 0, 1] },
  ]);
  metrics.gauge({ name: 'depth', help: 'Depth.' });
  expect([metrics.reading('depth'), metrics.reading('nothing')]).toEqual([undefined, undefined]);
});
