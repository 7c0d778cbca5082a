import { silentLogger } from '@remora/base';
import { createMetrics } from '@remora/base/node';
import { ManualClock } from '@remora/base/testing';
import type { Span } from '@remora/gateway';
import { expect, test } from 'vitest';
import { OtlpExporter } from './otlp-exporter.ts';

const SPAN: Span = {
  ...{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentSpanId: 'c'.repeat(16), name: 'remora put' },
  ...{
    startMs: 1_700_000_000_123,
    tookMs: 1.5,
    attributes: { 'remora.kind': 'put', 'remora.node': 1 },
    error: undefined,
  },
};

function bed(answer: () => Promise<{ ok: boolean; status: number }> = async () => ({ ok: true, status: 200 })) {
  const clock = new ManualClock();
  const metrics = createMetrics();
  const sent: { url: string; body: string; signal: AbortSignal }[] = [];
  const exporter = new OtlpExporter(
    {
      ...{ clock, metrics, logger: silentLogger },
      send: (url, body, signal) => {
        sent.push({ url, body, signal });
        return answer();
      },
    },
    { endpoint: 'http://collector:4318/', resource: { 'service.name': 'remora' } },
  );
  const count = async (outcome: string) =>
    Number(new RegExp(`remora_trace_spans_total{outcome="${outcome}"} (\\d+)`).exec(await metrics.render())?.[1] ?? 0);
  return { clock, exporter, sent, count };
}

test('spans of a second share one request, in the form of OTLP', async () => {
  const { clock, exporter, sent, count } = bed();
  exporter.add(SPAN);
  exporter.add({ ...SPAN, error: 'UNAVAILABLE' });
  clock.advance(1_000);
  await exporter.close();
  expect(sent.map(({ url }) => url)).toEqual(['http://collector:4318/v1/traces']);
  const { resourceSpans } = JSON.parse(sent[0]?.body ?? '');
  expect(resourceSpans[0].resource.attributes).toEqual([{ key: 'service.name', value: { stringValue: 'remora' } }]);
  expect(resourceSpans[0].scopeSpans[0].spans).toMatchObject([
    {
      ...{ traceId: SPAN.traceId, spanId: SPAN.spanId, parentSpanId: SPAN.parentSpanId, kind: 2, status: {} },
      ...{ startTimeUnixNano: '1700000000123000000', endTimeUnixNano: '1700000000124500000' },
      attributes: [
        { key: 'remora.kind', value: { stringValue: 'put' } },
        { key: 'remora.node', value: { intValue: '1' } },
      ],
    },
    { status: { code: 2, message: 'UNAVAILABLE' } },
  ]);
  expect(await count('exported')).toBe(2);
});

test.each([
  { name: 'refuses', answer: async () => ({ ok: false, status: 503 }) },
  { name: 'is away', answer: () => Promise.reject(new Error('connect ECONNREFUSED')) },
])('a collector that $name costs only the spans (OE2)', async ({ answer }) => {
  const { clock, exporter, count } = bed(answer);
  exporter.add(SPAN);
  clock.advance(1_000);
  await exporter.close();
  expect([await count('exported'), await count('dropped')]).toEqual([0, 1]);
  exporter.add(SPAN);
  expect(await count('dropped')).toBe(2);
});

test('while a collector does not answer, a bounded number of spans wait, and its request ends (OE1)', async () => {
  const { clock, exporter, sent, count } = bed(() => new Promise(() => {}));
  for (let i = 0; i < 10_000; i++) exporter.add(SPAN);
  clock.advance(1_000);
  for (let i = 0; i < 10_000; i++) exporter.add(SPAN);
  expect(sent).toHaveLength(1);
  expect(await count('dropped')).toBe(20_000 - 4_096 - 512);
  clock.advance(5_000);
  expect(sent[0]?.signal.aborted).toBe(true);
});

test('a collector that does not answer delays the end of a node by a second (OE2)', async () => {
  const { clock, exporter, sent, count } = bed(
    () =>
      new Promise((_, reject) => {
        const { signal } = sent.at(-1) ?? {};
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  exporter.add(SPAN);
  clock.advance(1_000);
  exporter.add(SPAN);
  const closed = exporter.close();
  clock.advance(1_000);
  await closed;
  expect([sent.length, await count('dropped')]).toEqual([1, 2]);
});

test('an endpoint that is no URL is refused', () => {
  const deps = {
    clock: new ManualClock(),
    logger: silentLogger,
    metrics: createMetrics(),
    send: () => Promise.reject(),
  };
  expect(() => new OtlpExporter(deps, { endpoint: 'collector:4318', resource: {} })).toThrow('http://127.0.0.1:4318');
});
