import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { nodeClock, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { API_LIMITS, type RunningHttpServer, startHttpServer } from '@remora/cli';
import { createHttpEndpoint, etcdApi, type HttpEndpoint, REQUEST_LIMITS } from '@remora/gateway';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { MemoryBackend } from '../e2e/memory-backend.ts';
import { adminApi } from '../support/admin-api.ts';
import { PlayedAuth } from '../support/auth-admin.ts';

let server: RunningHttpServer;
let endpoint: HttpEndpoint;
let malformed: number;
let waitsRefused: number;

beforeEach(() => serve());
afterEach(async () => {
  await endpoint.stop();
  await server.stop();
});

/** A cluster whose ranges answer no scan. */
class NoScans extends MemoryBackend {
  override query(...[query, options, done]: Parameters<MemoryBackend['query']>): () => void {
    if (query.type !== 'scan') return super.query(query, options, done);
    done(new ServiceError('UNIMPLEMENTED', 'no scans'), undefined);
    return () => {};
  }
}

async function serve(limits?: Parameters<typeof createHttpEndpoint>[1]): Promise<void> {
  const clock = nodeClock();
  const ports = { clock, random: new SeededRandom(1), backend: new NoScans(clock) };
  const etcd = etcdApi({ ...ports, scheme: 'http', node: ALONE_NODE }, () => false);
  [malformed, waitsRefused] = [0, 0];
  const onMalformed = (): void => void malformed++;
  const onWaitRefused = (): void => void waitsRefused++;
  const { requestBytesMax } = REQUEST_LIMITS;
  const deps = {
    ...ports,
    admin: adminApi(ports.backend, clock),
    auth: new PlayedAuth(clock).admin,
    logger: silentLogger,
    etcd,
    requestBytesMax,
    onMalformed,
    onWaitRefused,
  };
  const identification = NO_AUTHENTICATION;
  endpoint = createHttpEndpoint({ ...deps, identification }, limits);
  server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: '' }),
    handlers: [endpoint],
  });
}

/** As `curl -d` does: the type is that of a form. */
async function post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`http://127.0.0.1:${server.port}/v3/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: text,
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A stream of answers. */
class Lines {
  readonly values: Record<string, unknown>[] = [];
  status = 0;
  ended = false;
  readonly #request;
  #rest = '';

  constructor(path: string, ...bodies: readonly unknown[]) {
    const options = { method: 'POST', port: server.port, path: `/v3/${path}` };
    this.#request = httpRequest(options, (response: IncomingMessage) => {
      this.status = response.statusCode ?? 0;
      response.setEncoding('utf8').on('data', (chunk: string) => this.#take(chunk));
      response.on('end', () => {
        this.ended = true;
      });
    });
    this.#request.on('error', () => {});
    this.#request.end(bodies.map((body) => JSON.stringify(body)).join('\n'));
  }

  async count(wanted: number): Promise<readonly Record<string, unknown>[]> {
    await expect.poll(() => this.values.length).toBeGreaterThanOrEqual(wanted);
    return this.values;
  }

  async close(): Promise<void> {
    const closed = once(this.#request, 'close');
    this.#request.destroy();
    await closed;
  }

  #take(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.values.push(JSON.parse(line) as Record<string, unknown>);
  }
}

describe('calls', () => {
  test('a pair is put and read, as the examples of etcd do with curl', async () => {
    const put = await post('kv/put', { key: base64('foo'), value: base64('bar') });
    expect(put.status).toBe(200);
    expect(put.headers.get('content-type')).toBe('application/json');
    expect(put.headers.get('grpc-metadata-content-type')).toBe('application/grpc');
    expect(put.body).toMatchObject({ header: { member_id: '1', revision: '2', raft_term: '2' } });
    const { body } = await post('kv/range', { key: base64('foo') });
    expect(body).toMatchObject({
      kvs: [{ key: 'Zm9v', create_revision: '2', mod_revision: '2', version: '1', value: 'YmFy' }],
      count: '1',
    });
  });

  test('a transaction answers with what its branch did', async () => {
    const compare = [{ target: 'CREATE', key: base64('foo'), create_revision: '0' }];
    const success = [{ request_put: { key: base64('foo'), value: base64('bar') } }];
    const { body } = await post('kv/txn', { compare, success });
    expect(body).toMatchObject({ succeeded: true, responses: [{ response_put: { header: { revision: '2' } } }] });
  });

  test('leases keep all digits of their ids', async () => {
    const ID = '7587862094123456789';
    expect((await post('lease/grant', `{"ID":${ID},"TTL":100}`)).body).toMatchObject({ ID, TTL: '100' });
    expect((await post('kv/lease/timetolive', { ID, keys: true })).body).toMatchObject({ ID, grantedTTL: '100' });
    expect((await post('lease/leases', {})).body).toMatchObject({ leases: [{ ID }] });
    expect((await post('kv/lease/revoke', { ID })).status).toBe(200);
  });

  test('members, status and the version are shown', async () => {
    expect((await post('cluster/member/list', {})).body).toMatchObject({ members: [{ ID: '1', name: 'node-1' }] });
    expect((await post('maintenance/status', {})).body).toMatchObject({ version: '3.6.0', leader: '1' });
    const version = await fetch(`http://127.0.0.1:${server.port}/version`);
    expect(await version.json()).toEqual({ etcdserver: '3.6.0', etcdcluster: '3.6.0' });
  });

  test('a lock is taken, and given back', async () => {
    const { status, body } = await post('lock/lock', { name: base64('l') });
    expect(status).toBe(200);
    expect(Buffer.from(String(body.key), 'base64').toString()).toMatch(/^l\/[0-9a-f]+$/);
    expect((await post('lock/unlock', { key: body.key })).status).toBe(200);
  });
});

describe('errors', () => {
  const rows: readonly (readonly [string, unknown, number, number, string])[] = [
    ['kv/range', {}, 400, 3, 'etcdserver: key is not provided'],
    ['kv/range', '', 400, 3, 'etcdserver: key is not provided'],
    ['kv/range', 'nojson', 400, 3, 'the body is not JSON: expected a value'],
    ['kv/range', { key: '***' }, 400, 3, 'key: expected base64'],
    ['kv/range', { key: base64('k'), revision: 1_000 }, 400, 11, 'mvcc: required revision is a future revision'],
    ['lease/revoke', { ID: 5 }, 404, 5, 'etcdserver: requested lease not found'],
    ['auth/user/add', {}, 400, 3, 'etcdserver: user name is empty'],
    ['auth/authenticate', {}, 400, 9, 'etcdserver: authentication is not enabled'],
    ['election/leader', { name: base64('e') }, 500, 2, 'election: no leader'],
    ['watch', '', 400, 3, 'the body is empty'],
    ['watch', '{"create_request":{"key":"*"}}', 400, 3, 'create_request.key: expected base64'],
    ['none', {}, 404, 5, 'Not Found'],
  ];
  test.each(rows)('%s %o gets %i', async (path, body, status, code, message) => {
    const answer = await post(path, body);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ code, error: expect.stringContaining(message) });
    expect(answer.body.message).toBe(answer.body.error);
    expect(malformed).toBe(code === 3 ? 1 : 0);
  });

  test('another method than POST is refused', async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/v3/kv/range`);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('a body may be as large as a request of gRPC, and not much larger', async () => {
    const value = 'A'.repeat(Math.floor((REQUEST_LIMITS.requestBytesMax - 100) / 3) * 4);
    expect((await post('kv/put', { key: base64('k'), value })).status).toBe(200);
    expect((await post('kv/put', { key: base64('k'), value: `${value}${'A'.repeat(400)}` })).body).toMatchObject({
      message: 'etcdserver: request is too large',
    });
    expect((await post('kv/put', { key: base64('k'), value: `${value}${value}` })).status).toBe(413);
  });

  test('a page of another site is refused, whatever type its body has (HE6)', async () => {
    for (const headers of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
      expect((await post('kv/put', { key: base64('k') }, headers)).status).toBe(403);
    }
    expect((await post('kv/range', { key: base64('k') })).body.count).toBeUndefined();
  });

  test('the deadline of a call is that of Grpc-Timeout', async () => {
    const deadline = { 'grpc-timeout': '200m' };
    const late = { status: 504, body: { code: 4, message: 'context deadline exceeded' } };
    await post('kv/put', { key: base64('held/0'), value: base64('it is before all waiters') });
    expect(await post('lock/lock', { name: base64('held') }, deadline)).toMatchObject(late);
    expect((await post('kv/range', { key: base64('held/'), range_end: base64('held0') })).body.count).toBe('1');
    const body = JSON.stringify({ create_request: { key: base64('k') } });
    const watch = await fetch(`http://127.0.0.1:${server.port}/v3/watch`, { method: 'POST', headers: deadline, body });
    const [created, error] = (await watch.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(created).toMatchObject({ result: { created: true } });
    const names = {
      grpc_code: 4,
      http_code: 504,
      http_status: 'Gateway Timeout',
      message: 'context deadline exceeded',
    };
    expect(error).toMatchObject({ error: names });
  });
});

describe('streams', () => {
  test('a watch sends one object a line, and goes on after the body has ended', async () => {
    await post('kv/put', { key: base64('w/a'), value: base64('1') });
    const create_request = { key: base64('w/'), range_end: base64('w0'), start_revision: '1' };
    const lines = new Lines('watch', { create_request });
    await lines.count(2);
    await post('kv/deleterange', { key: base64('w/a') });
    const [created, past, now] = await lines.count(3);
    expect(created).toMatchObject({ result: { created: true } });
    expect(past).toMatchObject({ result: { events: [{ kv: { key: base64('w/a'), value: base64('1') } }] } });
    expect(now).toMatchObject({ result: { events: [{ type: 'DELETE', kv: { key: base64('w/a') } }] } });
    await lines.close();
  });

  test('several watches of one body have their ids, and one that is refused says why', async () => {
    const create = (more: object) => ({ create_request: { key: base64('k'), ...more } });
    const lines = new Lines('watch', create({}), create({}), create({ start_revision: -5 }));
    expect(await lines.count(3)).toMatchObject([
      { result: { created: true } },
      { result: { watch_id: '1', created: true } },
      { result: { watch_id: '-1', canceled: true, cancel_reason: expect.stringContaining('compacted') } },
    ]);
    await lines.close();
  });

  test('heartbeats are answered, and their stream ends with the body', async () => {
    await post('lease/grant', { ID: 7, TTL: 50 });
    const lines = new Lines('lease/keepalive', { ID: 7 }, { ID: 8 });
    expect(await lines.count(2)).toMatchObject([{ result: { ID: '7', TTL: '50' } }, { result: { ID: '8' } }]);
    await expect.poll(() => lines.ended).toBe(true);
  });

  test('an observer of an election gets each leader', async () => {
    const leader = await post('election/campaign', { name: base64('e'), value: base64('me') });
    const lines = new Lines('election/observe', { name: base64('e') });
    expect(await lines.count(1)).toMatchObject([{ result: { kv: { value: base64('me') } } }]);
    await post('election/proclaim', { leader: leader.body.leader, value: base64('again') });
    expect((await lines.count(2))[1]).toMatchObject({ result: { kv: { value: base64('again') } } });
    await lines.close();
  });

  test('a stream that fails before it has sent anything has the status of its error', async () => {
    const lines = new Lines('maintenance/snapshot', {});
    await expect.poll(() => lines.ended).toBe(true);
    expect(lines.status).toBe(501);
  });

  test('a stop ends streams, and what waits gets an error', async () => {
    await post('lock/lock', { name: base64('held') });
    const lines = new Lines('watch', { create_request: { key: base64('k') } });
    await lines.count(1);
    const waiting = post('lock/lock', { name: base64('held') });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await endpoint.stop();
    await expect.poll(() => lines.ended).toBe(true);
    expect((await waiting).status).toBe(503);
  });

  test('streams and waiting calls have slots, which closed connections give back (JG3)', async () => {
    await endpoint.stop();
    await server.stop();
    await serve({ callsMax: 4 });
    const open = [1, 2].map(() => new Lines('watch', { create_request: { key: base64('k') } }));
    for (const lines of open) await lines.count(1);
    expect(await post('watch', { create_request: { key: base64('k') } })).toMatchObject({ status: 429 });
    expect(waitsRefused).toBe(1);
    await open[0]?.close();
    await expect
      .poll(async () => {
        const lines = new Lines('watch', { create_request: { key: base64('k') } });
        await expect.poll(() => lines.status !== 0).toBe(true);
        const { status } = lines;
        await lines.close();
        return status;
      })
      .toBe(200);
  });
});
