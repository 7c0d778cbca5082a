/** A trace context passes from the SDK and from HTTP to the spans of the gateway, which a collector gets by OTLP. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { credentials, Metadata } from '@grpc/grpc-js';
import { PutRequest } from '@remora/protocol/etcd';
import { KVClient } from '@remora/protocol/grpc-clients';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

interface Span {
  readonly traceId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const contextOf = (span: string, flags = '01') => `00-${TRACE}-${span}-${flags}`;

/** Stands for a collector: keeps what it is sent. */
const spans: Span[] = [];
let collector: Server;
let cluster: Cluster;

beforeAll(async () => {
  collector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString());
      if (request.url === '/v1/traces') spans.push(...resourceSpans[0].scopeSpans[0].spans);
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  cluster = await Cluster.start({ nodes: 1, flags: { 'otlp-endpoint': `http://127.0.0.1:${port}` } });
});
afterAll(async () => {
  await cluster?.stop();
  collector?.close();
});

const spanOf = (parent: string, wanted: string) =>
  eventually('the collector has the span', () =>
    spans.find(({ parentSpanId, name }) => parentSpanId === parent && name === wanted),
  );

test('of the SDK, for each request', async () => {
  let context: string | undefined;
  await using client = await connect({ endpoints: cluster.endpoints, traceContext: () => context });
  context = contextOf('00000000000000a1');
  const putting = client.kv.put('secret', 'v');
  context = contextOf('00000000000000a2', '00');
  await client.kv.get('secret');
  context = contextOf('00000000000000a3');
  await client.lock('secret-lock').run(async () => {});
  await putting;
  const put = await spanOf('00000000000000a1', 'remora put');
  expect(put).toMatchObject({ traceId: TRACE, status: {}, kind: 2 });
  expect(put.attributes).toContainEqual({ key: 'remora.node', value: { intValue: '1' } });
  await eventually('the lock has its spans', () => {
    const names = spans.filter(({ parentSpanId }) => parentSpanId === '00000000000000a3').map(({ name }) => name);
    return names.includes('remora acquire') && names.includes('remora release');
  });
  expect(spans.filter(({ parentSpanId }) => parentSpanId === '00000000000000a2')).toEqual([]);
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('of HTTP, by its header', async () => {
  const response = await fetch(`http://${cluster.node(1).http}/v1/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: contextOf('00000000000000b1') },
    body: JSON.stringify({ ttl: '10s' }),
  });
  expect(response.ok).toBe(true);
  expect(await spanOf('00000000000000b1', 'remora leaseGrant')).toMatchObject({ traceId: TRACE });
  const [exported = 0] = (await cluster.node(1).metrics('remora_trace_spans_total')).values();
  expect(exported).toBeGreaterThan(0);
});

test('of etcd clients, by the metadata of gRPC and the header of JSON', async () => {
  const node = cluster.node(1);
  const kv = new KVClient(node.client, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('traceparent', contextOf('00000000000000c1'));
  const put = PutRequest.fromPartial({ key: Buffer.from('secret'), value: Buffer.from('v') });
  await new Promise<void>((resolve, reject) => kv.put(put, metadata, (error) => (error ? reject(error) : resolve())));
  kv.close();
  await spanOf('00000000000000c1', 'remora put');
  const response = await fetch(`http://${node.http}/v3/kv/range`, {
    method: 'POST',
    headers: { traceparent: contextOf('00000000000000c2') },
    body: JSON.stringify({ key: Buffer.from('secret').toString('base64') }),
  });
  expect(response.ok).toBe(true);
  await spanOf('00000000000000c2', 'remora range');
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('a program whose context is broken is served all the same', async () => {
  const broken = [
    () => 'nonsense',
    () => {
      throw new Error('no context');
    },
  ];
  for (const traceContext of broken) {
    await using client = await connect({ endpoints: cluster.endpoints, traceContext });
    await client.kv.put('k', 'v');
  }
});
