/**
 * Requests that are meant to be read in two ways, or to cost much, over real sockets. The endpoint behind the server is
 * the real one, so that what is read wrongly would have an effect.
 */
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { nodeClock, SeededRandom, silentLogger } from '@remora/base';
import { API_LIMITS, type RunningHttpServer, startHttpServer } from '@remora/cli';
import { createHttpEndpoint, etcdApi, REQUEST_LIMITS } from '@remora/gateway';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { adminApi } from '../support/admin-api.ts';
import { PlayedAuth } from '../support/auth-admin.ts';
import { SdkBackend } from '../support/sdk-backend.ts';

const ACQUIRE = '/v1/locks/default/l/acquire';
const JSON_TYPE = 'Content-Type: application/json';

let server: RunningHttpServer;
let backend: SdkBackend;

beforeEach(async () => {
  backend = new SdkBackend(nodeClock());
  const ports = { backend, clock: nodeClock(), random: new SeededRandom(1), logger: silentLogger };
  const etcd = etcdApi({ ...ports, scheme: 'http', node: ALONE_NODE }, () => false);
  server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
    handlers: [
      createHttpEndpoint({
        ...{
          ...ports,
          admin: adminApi(backend, ports.clock),
          auth: new PlayedAuth(ports.clock).admin,
          etcd,
          requestBytesMax: REQUEST_LIMITS.requestBytesMax,
        },
        identification: NO_AUTHENTICATION,
      }),
    ],
  });
});
afterEach(() => server.stop());

/** Sends and reads until the server has hung up. */
function exchange(bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(server.port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}

/** The statuses of all answers of one connection. */
const statusesOf = (answer: string): number[] =>
  [...answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));

function post(headers: readonly string[], body: string | Buffer, target = ACQUIRE): Promise<string> {
  const head = [`POST ${target} HTTP/1.1`, 'Host: localhost', ...headers].map((line) => `${line}\r\n`).join('');
  return exchange(Buffer.concat([Buffer.from(`${head}\r\n`), Buffer.from(body)]));
}

/** Hidden behind a request: takes the lock if the server reads it as a request of its own. */
const HIDDEN = `POST ${ACQUIRE} HTTP/1.1\r\nHost: localhost\r\n${JSON_TYPE}\r\nContent-Length: 2\r\n\r\n{}`;

describe('a request that two parsers end at different places is refused, and so is what is hidden in it (H6)', () => {
  const chunked = 'Transfer-Encoding: chunked';
  const length = `Content-Length: ${HIDDEN.length + 5}`;
  test.each([
    { name: 'a length beside chunks', headers: [length, chunked], body: `0\r\n\r\n${HIDDEN}` },
    { name: 'chunks beside a length', headers: [chunked, 'Content-Length: 4'], body: `0\r\n\r\n${HIDDEN}` },
    { name: 'two lengths', headers: ['Content-Length: 0', length], body: HIDDEN },
    { name: 'a list of lengths', headers: ['Content-Length: 0, 5'], body: HIDDEN },
    { name: 'a length with a sign', headers: ['Content-Length: +0'], body: HIDDEN },
    { name: 'a length in hexadecimal', headers: ['Content-Length: 0x0'], body: HIDDEN },
    { name: 'a space in front of a colon', headers: ['Content-Length : 0'], body: HIDDEN },
    { name: 'a folded header', headers: ['X: y', ' Content-Length: 0', chunked, 'Content-Length: 0'], body: HIDDEN },
    {
      name: 'an unknown encoding in the end',
      headers: ['Transfer-Encoding: chunked, gzip'],
      body: `0\r\n\r\n${HIDDEN}`,
    },
    { name: 'an encoding with a prefix', headers: ['Transfer-Encoding: xchunked'], body: `0\r\n\r\n${HIDDEN}` },
    { name: 'a chunk size with a sign', headers: [chunked], body: `+0\r\n\r\n${HIDDEN}` },
    { name: 'a chunk without its line end', headers: [chunked], body: `1\r\nx0\r\n\r\n${HIDDEN}` },
    { name: 'a lone CR in a header', headers: ['X: y\rContent-Length: 0', chunked], body: `0\r\n\r\n${HIDDEN}` },
    { name: 'a NUL in a header', headers: ['X: y\0', 'Content-Length: 0'], body: HIDDEN },
  ])('$name', async ({ headers, body }) => {
    const answer = await post([JSON_TYPE, ...headers], body, '/v1/sessions');
    expect(statusesOf(answer).slice(0, 2)).toEqual([400]);
    expect(backend.seen).toEqual([]);
  });

  test('two requests that are whole are two', async () => {
    const last = HIDDEN.replace(JSON_TYPE, `${JSON_TYPE}\r\nConnection: close`);
    expect(statusesOf(await exchange(HIDDEN + last))).toEqual([200, 423]);
  });
});

describe('ways out of a request', () => {
  test('a tunnel is not opened, whatever its target', async () => {
    for (const target of ['localhost:80', 'evil.example:443', '/v1/sessions']) {
      const answer = await exchange(`CONNECT ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n${HIDDEN}`);
      expect(statusesOf(answer)).not.toContain(200);
    }
    expect(backend.seen).toEqual([]);
  });

  test.each(['h2c', 'websocket', 'TLS/1.2'])(
    'a change to %s is not made, and checks hold for its request',
    async (to) => {
      const upgrade = ['Connection: Upgrade, close', `Upgrade: ${to}`, 'HTTP2-Settings: AAMAAABkAAQAAP__'];
      const get = (host: string) =>
        exchange(`GET /v1/locks/default/l HTTP/1.1\r\nHost: ${host}\r\n${upgrade.join('\r\n')}\r\n\r\n`);
      expect(statusesOf(await get('evil.example'))).not.toContain(200);
      expect(statusesOf(await get('localhost'))).not.toContain(101);
    },
  );

  test.each(['100-continue', 'something'])('a request that expects %s is checked first', async (expected) => {
    const head = `POST ${ACQUIRE} HTTP/1.1\r\nHost: evil.example\r\n${JSON_TYPE}\r\nContent-Length: 2`;
    const answer = await exchange(`${head}\r\nExpect: ${expected}\r\nConnection: close\r\n\r\n{}`);
    expect(statusesOf(answer)).not.toContain(200);
    expect(backend.seen).toEqual([]);
  });
});

describe('sizes', () => {
  test.each([
    { name: 'a header', head: `X: ${'y'.repeat(20_000)}` },
    { name: 'headers together', head: Array.from({ length: 400 }, (_, i) => `X-${i}: ${'y'.repeat(50)}`).join('\r\n') },
  ])('$name beyond 16 KiB are refused', async ({ head }) => {
    expect(statusesOf(await exchange(`GET /health HTTP/1.1\r\nHost: localhost\r\n${head}\r\n\r\n`))).toEqual([431]);
  });

  test('a target beyond 16 KiB is refused', async () => {
    expect(statusesOf(await exchange(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`))).toEqual([431]);
  });

  test('a body is refused when it is too large, whether its length is stated or not', async () => {
    const body = JSON.stringify({ data: 'x'.repeat(300_000) });
    expect(statusesOf(await post([JSON_TYPE, `Content-Length: ${body.length}`], body))).toEqual([413]);
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect(statusesOf(await post([JSON_TYPE, 'Transfer-Encoding: chunked'], chunk))).toEqual([413]);
    expect(backend.seen).toEqual([]);
  });

  test('a compressed body is never inflated: it is not JSON', async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000, '{'), { level: 9 });
    const headers = [JSON_TYPE, 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`];
    expect(statusesOf(await post(headers, bomb.subarray(0, 200_000)))).not.toContain(200);
    const small = gzipSync('{}');
    expect(statusesOf(await post([...headers.slice(0, 2), `Content-Length: ${small.length}`], small))).toEqual([400]);
    expect(backend.seen).toEqual([]);
  });
});

describe('names', () => {
  test.each([
    '/v1/../metrics',
    '/v1/locks/../../metrics',
    '/v1/%2e%2e/metrics',
    '/v1/..%2fmetrics',
    '/../../etc/passwd',
    '/v1/locks/default/..%2f..%2fetc%2fpasswd',
    '/v1/locks/default/%00',
    '/v3/../v1/sessions',
    '//metrics',
    '/metrics/../v1/sessions',
  ])('%s leads nowhere else than its bytes say', async (target) => {
    const answer = await exchange(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(answer).not.toMatch(/up 1|root:|"sessions"/);
  });

  test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'])(
    'a field or an attribute that is called %s changes no object',
    async (name) => {
      const polluted = `{"${name}":{"polluted":true,"wait":"1m"}}`;
      const send = (body: string, target: string) =>
        post([JSON_TYPE, `Content-Length: ${body.length}`, 'Connection: close'], body, target);
      expect(statusesOf(await send(polluted, ACQUIRE))).toEqual([400]);
      expect(statusesOf(await send(polluted, '/v3/kv/put'))).toEqual([400]);
      const answer = await send(`{"attributes":{"${name}":"x"}}`, '/v1/sessions');
      expect(statusesOf(answer)).toEqual([200]);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
      const opened = backend.seen.map(({ command }) => ('attributes' in command ? command.attributes : undefined));
      expect(opened.map((attributes) => Object.entries(attributes ?? {}))).toEqual([[[name, 'x']]]);
    },
  );
});
