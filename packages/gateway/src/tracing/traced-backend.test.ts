import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type CommandResult, requestTag } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import type { Backend, BackendDone } from '../backend.ts';
import { parseTraceparent } from './trace-context.ts';
import { type Span, TracedBackend } from './traced-backend.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const traceparent = (flags = '01') => `00-${TRACE}-${PARENT}-${flags}`;

describe('a traceparent', () => {
  test.each<{ name: string; text: string; sampled: boolean | undefined }>([
    { name: 'sampled', text: traceparent(), sampled: true },
    { name: 'not sampled', text: traceparent('00'), sampled: false },
    { name: 'with further flags', text: traceparent('03'), sampled: true },
    { name: 'of a later version', text: `cc-${TRACE}-${PARENT}-01-what-comes`, sampled: true },
    { name: 'of this version that is too long', text: `${traceparent()}-more`, sampled: undefined },
    { name: 'of version ff', text: `ff-${TRACE}-${PARENT}-01`, sampled: undefined },
    { name: 'without a trace', text: `00-${'0'.repeat(32)}-${PARENT}-01`, sampled: undefined },
    { name: 'without a span', text: `00-${TRACE}-${'0'.repeat(16)}-01`, sampled: undefined },
    { name: 'in capitals', text: traceparent().toUpperCase(), sampled: undefined },
    { name: 'that is something else', text: 'hello', sampled: undefined },
  ])('$name', ({ text, sampled }) => {
    expect(parseTraceparent(text)?.isSampled).toBe(sampled);
  });
});

function bed() {
  const clock = new ManualClock();
  const spans: Span[] = [];
  const asked: BackendDone<CommandResult>[] = [];
  const cancelled: number[] = [];
  const backend = {
    nodeId: 3,
    command: (_command: unknown, _options: unknown, done: BackendDone<CommandResult>) => {
      asked.push(done);
      return () => cancelled.push(1);
    },
  } as unknown as Backend;
  const add = (span: Span): void => void spans.push(span);
  const traced = new TracedBackend({ backend, spans: { add }, clock, random: new SeededRandom(1) });
  const put = (trace: string | undefined, done: BackendDone<CommandResult> = () => {}) => {
    const op = { type: 'delete', key: Buffer.from('secret'), end: undefined, prevKv: false } as const;
    return traced.command(
      { type: 'kv', op } as never,
      { principal: undefined, timeoutMs: 1, requestId: 'secret id', trace },
      done,
    );
  };
  return { clock, spans, asked, cancelled, put };
}

test('a sampled request has a span below that of its caller, without keys and request ids (TB2)', () => {
  const { clock, spans, asked, put } = bed();
  const startMs = clock.wallMs();
  put(traceparent());
  clock.advance(12);
  asked[0]?.(new ServiceError('UNAVAILABLE', 'no'), undefined);
  expect(spans).toEqual([
    {
      ...{ traceId: TRACE, parentSpanId: PARENT, spanId: expect.stringMatching(/^[0-9a-f]{16}$/) },
      ...{ name: 'remora delete', startMs, tookMs: 12, error: 'UNAVAILABLE' },
      attributes: { 'remora.kind': 'delete', 'remora.node': 3, 'remora.request': requestTag('secret id') },
    },
  ]);
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('other requests have none (TB1)', () => {
  const { spans, asked, put } = bed();
  for (const trace of [undefined, traceparent('00'), 'nonsense']) put(trace);
  for (const done of asked) done(undefined, undefined);
  expect([asked.length, spans.length]).toEqual([3, 0]);
});

test('a request that is given up ends its span once (TB3)', () => {
  const { spans, asked, cancelled, put } = bed();
  put(traceparent())();
  asked[0]?.(undefined, undefined);
  expect(spans.map(({ error }) => error)).toEqual(['CANCELED']);
  expect(cancelled).toEqual([1]);
});
