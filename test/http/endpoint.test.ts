import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ERROR_TABLE, type ErrorCode, nodeClock, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { API_LIMITS, type RunningHttpServer, startHttpServer } from '@remora/cli';
import {
  type Backend,
  createHttpEndpoint,
  etcdApi,
  type HttpEndpoint,
  type LockWatchListener,
  REQUEST_LIMITS,
} from '@remora/gateway';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { adminApi } from '../support/admin-api.ts';
import { PlayedAuth } from '../support/auth-admin.ts';
import { SdkBackend } from '../support/sdk-backend.ts';
import { undescribed } from './described.ts';

let server: RunningHttpServer;
let endpoint: HttpEndpoint;
let backend: SdkBackend;
let malformed: number;
let waitsRefused: number;
/** Bytes of bodies that the server has taken in. */
let received: number;

beforeEach(async () => {
  backend = new SdkBackend(nodeClock());
  await serve(backend);
});
afterEach(() => server.stop());

async function serve(over: Backend, limits?: Parameters<typeof createHttpEndpoint>[1]): Promise<void> {
  const ports = { clock: nodeClock(), random: new SeededRandom(1), logger: silentLogger };
  malformed = 0;
  const onMalformed = (): void => {
    malformed++;
  };
  waitsRefused = 0;
  received = 0;
  const onWaitRefused = (): void => {
    waitsRefused++;
  };
  const etcd = etcdApi({ backend: over, ...ports, scheme: 'http', node: ALONE_NODE }, () => false);
  const { requestBytesMax } = REQUEST_LIMITS;
  const calls = { onMalformed, onWaitRefused, identification: NO_AUTHENTICATION };
  endpoint = createHttpEndpoint(
    {
      backend: over,
      admin: adminApi(over, ports.clock),
      auth: new PlayedAuth(ports.clock).admin,
      ...ports,
      etcd,
      requestBytesMax,
      ...calls,
    },
    limits,
  );
  server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: '' }),
    handlers: [
      {
        paths: endpoint.paths,
        handle(request, response) {
          const done = endpoint.handle(request, response);
          request.on('data', (chunk: Buffer) => {
            received += chunk.length;
          });
          return done;
        },
      },
    ],
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ACQUIRE = '/v1/locks/default/l/acquire';

async function call(target: string, init: RequestInit = {}, described = true) {
  const { method = 'POST' } = init;
  const response = await fetch(`http://127.0.0.1:${server.port}${target}`, { method, headers: JSON_TYPE, ...init });
  const { status, headers } = response;
  const body = (await response.json()) as { readonly error?: { readonly code: string; readonly retry: string } };
  const asked = () => ({ method, target, body: JSON.parse(String(init.body ?? '{}')) });
  if (described) expect(undescribed(asked(), { status, body })).toBeUndefined();
  return { status, headers, body };
}

async function waiting(count: number): Promise<void> {
  for (;;) {
    const { body } = await call('/v1/locks/default/l', { method: 'GET', headers: {} });
    if ((body as { readonly waiterCount?: number }).waiterCount === count) return;
  }
}

/** What a response says, as it comes; `the end` when it has ended. */
function textOf({ body }: Response): { until(part: string): Promise<void> } {
  if (body === null) throw new Error('there is no body');
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async until(part) {
      while (!text.includes(part)) {
        const { done, value } = await reader.read();
        text += done ? 'the end' : value;
        if (done && !text.includes(part)) throw new Error(`it ended without ${part}: ${text}`);
      }
    },
  };
}

function memberOf(of: SdkBackend, name: string | symbol): unknown {
  const value: unknown = Reflect.get(of, name);
  return typeof value === 'function' ? value.bind(of) : value;
}

describe('over real connections', () => {
  test('a body is JSON by its type, and no other site has sent it', async () => {
    const refusals = await Promise.all([
      call(ACQUIRE, { headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      call(ACQUIRE, { headers: {} }),
      call(ACQUIRE, { headers: { ...JSON_TYPE, origin: 'http://evil.example' } }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([415, 415, 403]);
    expect(backend.seen).toEqual([]);
    const own = { ...JSON_TYPE, origin: `http://127.0.0.1:${server.port}` };
    const { status, headers } = await call(ACQUIRE, { headers: own });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, null]);
  });

  test('a body that is no JSON, or too long, is refused, and counted', async () => {
    const invalid = await fetch(`http://127.0.0.1:${server.port}${ACQUIRE}`, {
      ...{ method: 'POST', headers: JSON_TYPE, body: '{"wait":' },
    });
    expect(invalid.status).toBe(400);
    expect((await call(ACQUIRE, { body: JSON.stringify({ data: 'x'.repeat(300_000) }) })).status).toBe(413);
    expect([backend.seen, malformed]).toEqual([[], 2]);
  });

  test('a body that is nested deeper than any request is refused before it is parsed', async () => {
    const body = `{"data":${'['.repeat(250_000)}`;
    const answer = await call(ACQUIRE, { body: body.padEnd(260_000, ']') }, false);
    expect(answer).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining('nested more') } } });
    expect(backend.seen).toEqual([]);
  });

  describe('bodies that are not finished', () => {
    const KIB = 1024;
    const begun: Socket[] = [];
    const busy = /^HTTP\/1\.1 429 .*connection: close.*RESOURCE_EXHAUSTED/is;

    beforeEach(async () => {
      await server.stop();
      await serve(backend, { unfinishedBytesMax: 64 * KIB });
    });
    afterEach(() => {
      for (const socket of begun.splice(0)) socket.destroy();
    });

    /** Sends a body without its last byte; what it is answered is in `answer()`. */
    async function begin(kib: number, localAddress = '127.0.0.1') {
      const socket = connect({ port: server.port, host: '127.0.0.1', localAddress });
      begun.push(socket);
      let answer = '';
      socket.on('data', (chunk) => {
        answer += String(chunk);
      });
      const before = received;
      socket.write(`POST ${ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`);
      socket.write(`content-length: ${kib * KIB}\r\n\r\n{${' '.repeat(kib * KIB - 2)}`);
      await expect.poll(() => received - before, { interval: 5 }).toBeGreaterThanOrEqual(kib * KIB - 1);
      return { answer: () => answer, finish: () => socket.write('}') };
    }

    const answered = (body: { answer(): string }) => expect.poll(body.answer, { interval: 5 });

    test('of one address have a quarter of the room: the one that began first is ended, and no other is', async () => {
      const first = await begin(8);
      const second = await begin(8);
      expect(first.answer()).toBe('');
      const third = await begin(8);
      await answered(first).toMatch(busy);
      expect([second.answer(), third.answer()]).toEqual(['', '']);
      const shown = { connections: 2, closed: { address_bytes: 1, bytes: 0 } };
      expect(endpoint.input).toMatchObject(shown);
      expect(endpoint.input.unfinishedBytes).toBeGreaterThanOrEqual(2 * (8 * KIB - 1));
      third.finish();
      await answered(third).toMatch(/^HTTP\/1\.1 200 /);
      const fourth = await begin(8);
      expect([second.answer(), fourth.answer()]).toEqual(['', '']);
    });

    test('that are small are not counted, and those of others are taken while one address has all it may', async () => {
      const held = [await begin(8), await begin(8)];
      const small = await begin(4);
      expect((await call(ACQUIRE, { body: '{}' })).status).toBe(200);
      small.finish();
      await answered(small).toMatch(/^HTTP\/1\.1 423 /);
      const other = await begin(16, '127.0.0.2');
      other.finish();
      await answered(other).toMatch(/^HTTP\/1\.1 423 /);
      expect(held.map((body) => body.answer())).toEqual(['', '']);
    });

    test('fill the room: the oldest of the address that holds most is ended', async () => {
      const most = await begin(16, '127.0.0.3');
      const less = [await begin(12, '127.0.0.2'), await begin(12, '127.0.0.4'), await begin(12, '127.0.0.5')];
      const next = await begin(14, '127.0.0.6');
      await answered(most).toMatch(busy);
      next.finish();
      await answered(next).toMatch(/^HTTP\/1\.1 200 /);
      expect(less.map((body) => body.answer())).toEqual(['', '', '']);
    });

    test('take no place from calls, however many they are', async () => {
      await server.stop();
      await serve(backend, { callsMax: 2 });
      const bodies = [];
      for (let i = 0; i < 10; i++) bodies.push(await begin(1));
      expect((await call('/v1/sessions', { body: '{}' })).status).toBe(200);
      expect(bodies.map((body) => body.answer())).toEqual(new Array(10).fill(''));
      for (const body of bodies) body.finish();
      for (const body of bodies) await answered(body).toMatch(/^HTTP\/1\.1 (200|423|429) /);
    });

    test('give their room back when their client hangs up', async () => {
      const first = await begin(8);
      await begin(6);
      begun.at(-1)?.destroy();
      for (let i = 0; i < 3; i++) await call(ACQUIRE, { body: '{}' }); // By then the server knows that it hung up.
      await begin(8);
      first.finish();
      await answered(first).toMatch(/^HTTP\/1\.1 423 /);
    });
  });

  test('a client that hangs up while it waits leaves the queue', async () => {
    await call(ACQUIRE);
    const caller = new AbortController();
    const lost = call(ACQUIRE, { body: '{"wait":"1m"}', signal: caller.signal });
    await waiting(1);
    caller.abort();
    await expect(lost).rejects.toThrow();
    await waiting(0);
  });

  test('a client that ends its side of the connection while it waits leaves the queue, too', async () => {
    await call(ACQUIRE);
    const socket = connect(server.port, '127.0.0.1');
    const body = '{"wait":"1m"}';
    socket.write(`POST ${ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`);
    socket.write(`content-length: ${body.length}\r\n\r\n${body}`);
    await waiting(1);
    socket.end();
    await once(socket.resume(), 'close');
    await waiting(0);
  });

  test('events are told as they happen, until the client hangs up or the node stops', async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/events/default/l`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const told = textOf(response);
    await told.until('event: state\ndata: {"namespace":"default","name":"l","revision":100,"state":null}\n\n');
    await call(ACQUIRE);
    await told.until('"type":"acquired"');
    const other = await fetch(`http://127.0.0.1:${server.port}/v1/events/default?prefix=l`);
    await other.body?.cancel();
    await endpoint.stop();
    await told.until('the end');
  });

  test('nothing is told any more to a client that hears of the stop', async () => {
    const listeners: LockWatchListener[] = [];
    const watchLocks: Backend['watchLocks'] = (options, listener) => {
      listeners.push(listener);
      return backend.watchLocks(options, listener);
    };
    await server.stop();
    await serve(new Proxy(backend, { get: (of, name) => (name === 'watchLocks' ? watchLocks : memberOf(of, name)) }));
    const told = textOf(await fetch(`http://127.0.0.1:${server.port}/v1/events/default/l`));
    await told.until('event: state');
    const stopped = endpoint.stop();
    // Who waited at this node leaves the queue, say.
    for (const listener of listeners) listener([{ type: 'live' }]);
    await stopped;
    await told.until('the end');
  });

  test('one call more than there may be is refused at once, and health checks are not', async () => {
    await server.stop();
    const held: (() => void)[] = [];
    const query: Backend['query'] = (...asked) => {
      held.push(() => backend.query(...asked));
      return () => {};
    };
    const holding = new Proxy(backend, { get: (of, name) => (name === 'query' ? query : memberOf(of, name)) });
    await serve(holding, { callsMax: 2 });
    const inFlight = [1, 2].map(() => call('/v1/locks/default/l', { method: 'GET', headers: {} }));
    await expect.poll(() => held.length).toBe(2);
    expect(await call(ACQUIRE)).toMatchObject({ status: 429, body: { error: { retry: 'later' } } });
    expect((await fetch(`http://127.0.0.1:${server.port}/health`)).status).toBe(200);
    for (const answer of held) answer();
    expect((await Promise.all(inFlight)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await call(ACQUIRE)).status).toBe(200);
  });

  test('who waits or listens leaves room for who ends waits', async () => {
    await server.stop();
    await serve(backend, { callsMax: 4 });
    const { body: held } = await call(ACQUIRE);
    const next = call(ACQUIRE, { body: '{"wait":"1m"}' });
    await waiting(1);
    const events = await fetch(`http://127.0.0.1:${server.port}/v1/events/default/l`);
    expect(events.status).toBe(200);
    const busy = { status: 429, body: { error: { code: 'RESOURCE_EXHAUSTED', retry: 'later' } } };
    expect(await call(ACQUIRE, { body: '{"wait":"1m"}' })).toMatchObject(busy);
    expect(await call('/v1/events/default/l', { method: 'GET', headers: {} })).toMatchObject(busy);
    expect(waitsRefused).toBe(2);
    for (const action of ['renew', 'release']) {
      expect((await call(`/v1/locks/default/l/${action}`, { body: JSON.stringify(held) })).status).toBe(200);
    }
    expect((await next).status).toBe(200);
    expect((await call(ACQUIRE, { body: '{"wait":1}' })).status).toBe(423);
    await events.body?.cancel();
    const again = () => fetch(`http://127.0.0.1:${server.port}/v1/events/default/l`);
    await again();
    await expect.poll(async () => (await again()).status, { interval: 5 }).toBe(200);
  });

  test('who waits at a node that stops is told to ask another, and leaves nothing', async () => {
    await call(ACQUIRE);
    const lost = call(ACQUIRE, { body: '{"wait":"1m"}' });
    await waiting(1);
    await endpoint.stop();
    // Whoever stops the node takes it from the cluster as soon as this is done.
    expect(backend.sessions).toBe(1);
    expect(await lost).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE', retry: 'same' } } });
    expect((await call(ACQUIRE)).status).toBe(503);
  });
});

describe('keys over real connections', () => {
  const at = (path: string) => `http://127.0.0.1:${server.port}/v1/${path}`;

  test('a value may be as large as a request, also in base64; other bodies may not', async () => {
    const base64 = Buffer.alloc(1.5 * 1024 * 1024 - 1, 0xff).toString('base64');
    expect((await call('/v1/kv/k', { method: 'PUT', body: JSON.stringify({ value: { base64 } }) })).status).toBe(200);
    expect((await call('/v1/kv/k', { method: 'GET', headers: {} })).body).toMatchObject({
      valueBytes: 1.5 * 1024 * 1024 - 1,
    });
    const data = 'v'.repeat(300 * 1024);
    expect((await call(ACQUIRE, { body: JSON.stringify({ data }) })).status).toBe(413);
    expect(
      (await call('/v1/kv/k', { method: 'PUT', body: JSON.stringify({ value: `${base64}${data}` }) })).status,
    ).toBe(413);
  });

  test('a stream has the revisions as ids, and resumes behind the one that the client names', async () => {
    for (const value of ['one', 'two']) {
      await call('/v1/kv/k', { method: 'PUT', body: JSON.stringify({ value }) });
    }
    const first = await fetch(at('kv-events?key=k&since=1'));
    expect(first.headers.get('content-type')).toBe('text/event-stream');
    const text = textOf(first);
    await text.until('id: 1\nevent: live\ndata: {"revision":1}\n\n');
    await text.until('id: 3\nevent: events\ndata: {"revision":3,');
    const again = textOf(await fetch(at('kv-events?key=k&since=1'), { headers: { 'last-event-id': '2' } }));
    await again.until('id: 2\nevent: live\n');
    await again.until('id: 3\nevent: events\n');
  });

  test('an export is imported as curl sends it, and a line that is no JSON is named', async () => {
    for (const key of ['a', 'b']) await call(`/v1/kv/${key}`, { method: 'PUT', body: '{"value":"v"}' });
    const exported = await fetch(at('kv-export'));
    expect(exported.headers.get('content-type')).toBe('application/jsonl');
    const lines = await exported.text();
    expect(lines.split('\n').map((line) => line.slice(0, 8))).toEqual(['{"key":"', '{"key":"', '{"end":{', '']);
    const load = async (body: string, type = 'application/jsonl') => {
      const response = await fetch(at('kv-import?mode=overwrite'), {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      });
      return { status: response.status, text: await response.text() };
    };
    expect(await load(lines, 'application/x-ndjson')).toEqual({ status: 200, text: '{"written":2,"skipped":0}\n' });
    expect(await load(`${lines}{"key":`)).toMatchObject({
      status: 400,
      text: expect.stringContaining('line 4 is not JSON'),
    });
    expect((await load(lines, 'text/plain')).status).toBe(415);
    expect((await load('\n'.repeat(10_001))).status).toBe(413);
  });
});

describe('a cluster in trouble', () => {
  const rows = (Object.keys(ERROR_TABLE) as ErrorCode[]).filter((code) =>
    ['DEADLINE_EXCEEDED', 'INTERNAL', 'NOT_LEADER', 'RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'UNKNOWN_OUTCOME'].includes(
      code,
    ),
  );
  const STATUS: Readonly<Record<string, number>> = {
    ...{ DEADLINE_EXCEEDED: 504, INTERNAL: 500, NOT_LEADER: 503 },
    ...{ RESOURCE_EXHAUSTED: 429, UNAVAILABLE: 503, UNKNOWN_OUTCOME: 504 },
  };
  test.each(rows)('is told as it is: %s', async (code) => {
    await server.stop();
    const failing = { ...{ view: () => backend.view(), nodeId: 1, rangeTimeMs: () => 0, check: () => {} } };
    const fail = (_request: unknown, _options: unknown, done: (error: ServiceError, reply: undefined) => void) => {
      done(new ServiceError(code, 'no', { details: { retryAfterMs: 100 } }), undefined);
      return () => {};
    };
    await serve({ ...failing, command: fail, query: fail, watch: backend.watch, watchLocks: backend.watchLocks });
    const targets = ['/v1/sessions', ACQUIRE, '/v1/locks/default/l/force-release'];
    for (const target of targets) {
      const { status, body, headers } = await call(target);
      expect([status, body.error?.code]).toEqual([STATUS[code], code]);
      expect(headers.get('retry-after')).toBe('1');
    }
  });
});
