import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeClock } from '@remora/base';
import { PIPE_REQUEST_BYTES_MAX } from '@remora/protocol';
import { connect, type RemoraClient } from 'remora';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SdkBackend } from '../support/sdk-backend.ts';
import { type SdkGateway, startSdkGateway } from '../support/sdk-gateway.ts';
import { tlsFront } from '../support/tls-front.ts';

let gateways: SdkGateway[];
let backend: SdkBackend;
let client: RemoraClient;

beforeEach(async () => {
  backend = new SdkBackend(nodeClock());
  gateways = [await startSdkGateway(backend), await startSdkGateway(backend)];
  client = await connect({ endpoints: gateways.map(({ address }) => address), sessionTtl: '5s' });
});

afterEach(async () => {
  await client.close();
  for (const gateway of gateways) gateway.stop();
});

test('many operations at once over a real socket, all answered', async () => {
  await Promise.all(Array.from({ length: 1_000 }, (_, i) => client.kv.put(`k/${i}`, `v${i}`)));
  const { kvs, count } = await client.kv.range({ prefix: 'k/' });
  expect([kvs.length, count]).toEqual([1_000, 1_000]);
  const large = Buffer.alloc(1_400_000, 7);
  await client.kv.put('large', large);
  expect((await client.kv.get('large'))?.value.equals(large)).toBe(true);
});

test('a lock is held over the loss of its gateway and released by await using', async () => {
  const watch = client.kv.watch('w');
  {
    await using held = await client.lock('orders/42').acquire({ wait: '60s' });
    expect(held.version).toBeGreaterThan(0);
    const used = gateways.findIndex(({ pipe }) => pipe.connections > 0);
    gateways[used]?.stop();
    await client.kv.put('w', 'after');
    expect(await held.check()).toBe(true);
    expect(held.signal.aborted).toBe(false);
  }
  expect(await client.locks.show('orders/42')).toBeUndefined();
  expect((await watch.next()).value?.kv.value.toString()).toBe('after');
  watch.close();
});

test('close frees what is held, for others at once', async () => {
  const other = await connect({ endpoints: gateways.map(({ address }) => address) });
  await client.lock('l').acquire();
  const waiting = other.lock('l').acquire({ wait: '60s' });
  await client.close();
  expect((await waiting).state).toBe('active');
  await other.close();
  expect(backend.sessions).toBe(0);
});

test('a request that is too large is refused alone, by the gateway or before it is sent', async () => {
  const codeOf = (put: Promise<unknown>) =>
    put.then(
      () => 'ok',
      (error: { code: string }) => error.code,
    );
  const sizes = [1_500_000, 1_600_000, PIPE_REQUEST_BYTES_MAX - 1_000, PIPE_REQUEST_BYTES_MAX, 80_000_000];
  const codes = await Promise.all([
    ...sizes.map((size) => codeOf(client.kv.put('large', Buffer.alloc(size)))),
    codeOf(client.kv.put('small', 'v')),
  ]);
  expect(codes).toEqual(['ok', ...new Array(4).fill('REQUEST_TOO_LARGE'), 'ok']);
});

test('a client and a gateway that allow larger requests exchange them, many in one turn', async () => {
  const requestBytesMax = 6_000_000;
  const gateway = await startSdkGateway(backend, requestBytesMax);
  gateways.push(gateway);
  const large = await connect({ endpoints: gateway.address, requestBytesMax: requestBytesMax + 1_000 });
  const value = Buffer.alloc(requestBytesMax - 10, 7);
  const puts = Array.from({ length: 20 }, (_, i) => large.kv.put(`k/${i}`, Buffer.alloc(100_000)));
  await Promise.all([...puts, large.kv.put('l/1', value), large.kv.put('l/2', value)]);
  expect((await large.kv.get('l/2'))?.value.equals(value)).toBe(true);
  await large.close();
});

test('gateways behind something that ends TLS are reached with the options of node:tls, and not without', async () => {
  const front = await tlsFront(gateways[0]?.address ?? '');
  try {
    const { ca, address: endpoints } = front;
    await using trusting = await connect({ endpoints, tls: { ca } });
    await trusting.kv.put('k', 'v');
    expect((await client.kv.get('k'))?.value.toString()).toBe('v');
    await using byName = await connect({ endpoints: endpoints.replace('127.0.0.1', 'localhost'), tls: { ca } });
    expect((await byName.kv.get('k'))?.value.toString()).toBe('v');
    expect(new Set(front.names)).toEqual(new Set(['none', 'localhost']));
    const refused = { endpoints, connectTimeout: '500ms' } as const;
    await expect(connect({ ...refused, tls: {} })).rejects.toThrow(/signed by itself/);
    await expect(connect(refused)).rejects.toThrow(/no answer|ended the connection/);
  } finally {
    front.close();
  }
});

/** Another process that holds a lock, in a session that would outlive it for a minute. */
async function holder(name: string, ...journal: readonly string[]): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('lock-holder.mjs', import.meta.url));
  const endpoints = gateways.map(({ address }) => address).join(',');
  const child = spawn(process.execPath, [program, endpoints, name, '60000', ...journal], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a process that %s ends releases what it holds, and dies of the signal',
  async (signal) => {
    const child = await holder('l');
    expect(await client.lock('l').tryAcquire()).toBeUndefined();
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([null, signal]);
    expect((await client.lock('l').tryAcquire())?.state).toBe('active');
  },
);

test('what a process held that was killed is given back as the next one connects', async () => {
  const journal = await mkdtemp(join(tmpdir(), 'remora-journal-'));
  try {
    const child = await holder('l', journal);
    expect(await readdir(journal)).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await client.lock('l').tryAcquire()).toBeUndefined();
    await using next = await connect({ endpoints: gateways.map(({ address }) => address), journal });
    expect((await next.lock('l').acquire({ wait: '60s' })).state).toBe('active');
  } finally {
    await rm(journal, { recursive: true });
  }
});

test('a thread of its own renews what is held while the main thread is blocked, for so long as that is allowed', async () => {
  const program = fileURLToPath(new URL('lock-blocker.mjs', import.meta.url));
  const endpoints = gateways.map(({ address }) => address).join(',');
  const blocked = async (name: string, longestMs: number): Promise<string> => {
    const child = spawn(process.execPath, [program, endpoints, name, String(longestMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    const [code] = await once(child, 'close');
    return `${out}${code}`;
  };
  const ended = await Promise.all([blocked('l', 30_000), blocked('m', 500)]);
  expect(ended).toEqual(['active false true\n0', 'lost true false\n0']);
});
