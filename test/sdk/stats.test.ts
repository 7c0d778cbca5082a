import { SpanStatusCode } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Tracer } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});

describe('what a lock tells of its acquire', () => {
  test('that was granted at once', async () => {
    const client = await world.client();
    const { stats } = await world.until(client.lock('l').acquire());
    expect(stats).toMatchObject({ queuePosition: 0, attempts: 1, gateway: expect.stringMatching(/^[ab]:1$/) });
    expect(stats.waitMs).toBeLessThan(100);
  });

  test('that had to wait: its place when it joined, and how long it took', async () => {
    const client = await world.client();
    const held = await world.until(client.lock('l').acquire());
    const [second, third] = [client.lock('l').acquire(), client.lock('l').acquire()];
    await world.run(400);
    await world.until(held.release());
    const { stats } = await world.until(second);
    expect([stats.queuePosition, stats.attempts]).toEqual([1, 1]);
    expect(stats.waitMs).toBeGreaterThanOrEqual(400);
    await world.run(300);
    await world.until((await second).release());
    expect((await world.until(third)).stats).toMatchObject({ queuePosition: 2, waitMs: expect.any(Number) });
    expect((await third).stats.waitMs - stats.waitMs).toBeGreaterThanOrEqual(300);
  });

  test('that was not granted in time, in the details of its error', async () => {
    const client = await world.client();
    await world.until(client.lock('l').acquire());
    const failing = client.lock('l').acquire({ wait: '400ms' });
    await expect(world.until(failing)).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      details: { waitMs: expect.any(Number), attempts: 1, gateway: expect.stringMatching(/^[ab]:1$/) },
    });
    const { details } = await failing.catch((error) => error);
    expect(details.waitMs).toBeGreaterThanOrEqual(395);
    expect(details).not.toHaveProperty('queuePosition'); // nobody has told it yet
  });

  test('that a gateway did not bring to its end', async () => {
    const client = await world.client();
    await world.until(client.lock('other').acquire());
    const busy = GATEWAYS.find((address) => world.links.at(-1)?.address === address) ?? '';
    world.overLimit.add(busy);
    const acquiring = client.lock('l').acquire();
    await world.run(1_000);
    world.overLimit.clear();
    const { stats } = await world.until(acquiring);
    expect(stats.attempts).toBeGreaterThan(1);
    expect(stats.attempts).toBe(1 + world.refused);
  });
});

describe('attempts', () => {
  test('are no more than the retry policy has, and then end as the last one did', async () => {
    const client = await world.client({ retry: { attempts: 3, initial: '10ms', max: '50ms' } });
    await world.until(client.kv.get('k'));
    for (const address of GATEWAYS) world.overLimit.add(address);
    expect(await world.until(codeOf(client.kv.put('k', 'v')))).toBe('RESOURCE_EXHAUSTED');
    expect(world.refused).toBe(3);
  });
});

describe('spans of OpenTelemetry', () => {
  const exporter = new InMemorySpanExporter();
  const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('test');
  beforeEach(() => exporter.reset());
  const spans = () => exporter.getFinishedSpans().map(({ name, attributes, status }) => ({ name, attributes, status }));

  test('cover waiting and holding', async () => {
    const client = await world.client({ tracer });
    const held = await world.until(client.rwLock('l', { namespace: 'n' }).read());
    const lock = { 'remora.lock.namespace': 'n', 'remora.lock.name': 'l', 'remora.lock.mode': 'shared' };
    const version = { 'remora.lock.version': held.version };
    const acquired = {
      'remora.lock.queue_position': 0,
      'remora.lock.attempts': 1,
      'server.address': held.stats.gateway,
    };
    const unset = { code: SpanStatusCode.UNSET };
    const waited = { name: 'remora.lock.acquire', attributes: { ...lock, ...version, ...acquired }, status: unset };
    expect(spans()).toEqual([waited]);
    await world.until(held.release());
    expect(spans()).toEqual([waited, { name: 'remora.lock.hold', attributes: { ...lock, ...version }, status: unset }]);
  });

  test('say why a lock was not granted, and why one was lost, once', async () => {
    const client = await world.client({ tracer });
    const held = await world.until(client.lock('l').acquire());
    expect(await world.until(client.lock('l').tryAcquire())).toBeUndefined();
    await world.until(codeOf(client.lock('l').acquire({ wait: '100ms' })));
    await world.until(client.locks.forceRelease('l'));
    expect(await world.until(held.check())).toBe(false);
    await world.until(held[Symbol.asyncDispose]());
    const failed = spans().slice(1);
    expect(failed.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['remora.lock.acquire', 'LOCK_BUSY'],
      ['remora.lock.acquire', 'LOCK_TIMEOUT'],
      ['remora.lock.hold', 'LOCK_NOT_HELD'],
    ]);
    expect(failed.map(({ status }) => status.code)).toEqual(new Array(3).fill(SpanStatusCode.ERROR));
    expect(
      exporter
        .getFinishedSpans()
        .at(-1)
        ?.events.map(({ name }) => name),
    ).toEqual(['exception']);
  });

  test('begin in the turn in which the lock is asked for, where the span of whoever asks is active', async () => {
    const begun: string[] = [];
    const watched: Tracer = {
      startSpan(name, options) {
        begun.push(name);
        return tracer.startSpan(name, options);
      },
    };
    const client = await world.client({ tracer: watched });
    const acquiring = client.lock('l').acquire();
    expect(begun).toEqual(['remora.lock.acquire']);
    await world.until(acquiring);
  });

  const broken = (): never => {
    throw new Error('no exporter');
  };
  const BROKEN_SPAN = { setAttributes: broken, setStatus: broken, recordException: broken, end: broken };
  test.each([
    { name: 'starts no span', startSpan: broken },
    { name: 'gives spans that do nothing but throw', startSpan: () => BROKEN_SPAN },
  ])('a tracer that $name harms no lock (TR1)', async ({ startSpan }) => {
    const client = await world.client({ tracer: { startSpan } });
    for (let i = 0; i < 2; i++) {
      const held = await world.until(client.lock('l').acquire());
      expect(await world.until(client.lock('l').tryAcquire())).toBeUndefined();
      await world.until(held.release());
    }
  });
});
