import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { nodeClock, OutputBudget, silentLogger } from '@remora/base';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  API_LIMITS,
  HEALTH_LIMITS,
  type HttpServerOptions,
  type RunningHttpServer,
  serveHttpConnections,
  startHttpServer,
} from './http-server.ts';

const running: RunningHttpServer[] = [];

afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

async function start(
  options: Partial<HttpServerOptions> = {},
): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: false, reasons: ['no leader'], details: { node: 'n1' } }),
    metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
    ...options,
  });
  running.push(server);
  return (path, init) => fetch(`http://127.0.0.1:${server.port}${path}`, init);
}

test('health has the shape that tools of etcd look for', async () => {
  const get = await start();
  const response = await get('/health?serializable=true');
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ health: 'true', reasons: [] });
});

test('a node that is not ready answers 503 with its reasons (H2)', async () => {
  const get = await start();
  const response = await get('/ready');
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({ ready: false, reasons: ['no leader'], node: 'n1' });
});

test('metrics are served as they were rendered', async () => {
  const get = await start();
  const response = await get('/metrics');
  expect(response.headers.get('content-type')).toBe('text/plain');
  expect(await response.text()).toBe('up 1\n');
});

test('an unknown path is answered with what was probably meant', async () => {
  const get = await start();
  const response = await get('/heatlh');
  expect(response.status).toBe(404);
  expect(await response.json()).toEqual({ error: 'nothing at /heatlh; did you mean /health?' });
  expect(((await (await get('/zzz')).json()) as { error: string }).error).toContain(
    'the paths are /health, /ready, /metrics',
  );
});

test('a method that makes no sense is refused with what is allowed', async () => {
  const get = await start();
  const response = await get('/health', { method: 'POST' });
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe('GET, HEAD');
});

test('a handler gets its paths and what is below them, and its failure is a 500 for that request only', async () => {
  const get = await start({
    handlers: [
      {
        paths: ['/v1/', '/doc.json'],
        handle(request, response) {
          if (request.url === '/v1/fail') throw new Error('secret');
          response.end(request.url);
        },
      },
    ],
  });
  for (const path of ['/v1/kv', '/v1', '/doc.json?x']) expect(await (await get(path)).text()).toBe(path);
  for (const path of ['/v12', '/doc.json/x']) expect((await get(path)).status).toBe(404);
  const failed = await get('/v1/fail');
  expect(failed.status).toBe(500);
  expect(await failed.text()).not.toContain('secret');
  expect((await get('/health')).status).toBe(200);
});

test('a taken port is named together with the flag that changes it', async () => {
  const other = createServer();
  const port = await new Promise<number>((resolve) => {
    other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
  });
  await expect(start({ listen: { host: '127.0.0.1', port } })).rejects.toMatchObject({
    exit: 'portTaken',
    message: `port ${port} on 127.0.0.1 is taken; choose another with --http-listen`,
  });
  await new Promise((resolve) => other.close(resolve));
});

test('a stop ends connections that are kept alive, and nothing answers afterwards', async () => {
  const get = await start();
  await (await get('/health')).text();
  const begun = performance.now();
  await running.splice(0)[0]?.stop();
  expect(performance.now() - begun).toBeLessThan(5000);
  await expect(get('/health')).rejects.toThrow();
});

test('probes are answered while others hold all connections of the listener for probes (H3)', async () => {
  const get = await start({ limits: { ...HEALTH_LIMITS, connectionsMax: 6, connectionsPerAddressMax: 4 } });
  const { port = 0 } = running[0] ?? {};
  const held: Socket[] = [];
  for (const localAddress of ['127.0.0.2', '127.0.0.3', '127.0.0.2', '127.0.0.1', '127.0.0.1']) {
    for (let i = 0; i < 4; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      held.push(socket.on('error', () => {}));
      socket.write('GET /health HTTP/1.1\r\nhost: 127.');
      await once(socket, 'connect');
    }
    // By a connection of its own, as probes have it.
    expect((await get('/health', { headers: { connection: 'close' } })).status).toBe(200);
  }
  await expect.poll(() => held.filter(({ destroyed }) => !destroyed).length).toBeLessThanOrEqual(6);
  for (const socket of held) socket.destroy();
});

describe('answers that nobody reads (H5)', () => {
  const MIB = 1 << 20;
  const large = {
    paths: ['/large'],
    handle: (_request: unknown, response: ServerResponse) => void response.end(Buffer.alloc(24 * MIB)),
  };

  test('end their connection beyond the budget of its address, and no other', async () => {
    const output = new OutputBudget({ bytesMax: 64 * MIB, bytesPerAddressMax: 8 * MIB }, nodeClock());
    const get = await start({ handlers: [large], output });
    expect((await get('/health')).status).toBe(200);
    const deaf = connect(running[0]?.port ?? 0, '127.0.0.1');
    deaf.on('error', () => {});
    deaf.pause();
    deaf.write('GET /large HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
    await expect.poll(() => output.stats.closed.address_unread_bytes).toBe(1);
    expect((await get('/health')).status).toBe(200);
    expect(output.stats.unreadBytes).toBe(0);
    deaf.destroy();
  });

  test('count no more once they are read', async () => {
    const output = new OutputBudget({ bytesMax: 64 * MIB, bytesPerAddressMax: 32 * MIB }, nodeClock());
    const get = await start({ handlers: [large], output });
    for (let i = 0; i < 3; i++) expect((await (await get('/large')).arrayBuffer()).byteLength).toBe(24 * MIB);
    await expect.poll(() => output.stats).toMatchObject({ unreadBytes: 0, closed: { address_unread_bytes: 0 } });
  });
});

describe('connections of another port', () => {
  const services = {
    ...{ limits: { ...API_LIMITS, headersTimeoutMs: 300, requestTimeoutMs: 300 }, names: new Set<string>() },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
  };
  let http = serveHttpConnections(services);
  /** Looks at the first bytes, then hands the connection over. */
  const port = createServer((socket: Socket) => {
    socket.once('data', (begun: Buffer) => {
      socket.pause();
      socket.unshift(begun);
      http.take(socket);
    });
  });
  let at = 0;

  beforeAll(async () => {
    await new Promise<void>((resolve) => port.listen(0, '127.0.0.1', resolve));
    at = (port.address() as { port: number }).port;
  });
  afterAll(() => new Promise((resolve) => port.close(resolve)));

  test('are served from their first byte on, several requests each', async () => {
    for (const path of ['/health', '/metrics']) expect((await fetch(`http://127.0.0.1:${at}${path}`)).status).toBe(200);
    const socket = connect(at, '127.0.0.1');
    socket.write(
      'GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n',
    );
    expect(await text(socket)).toMatch(/up 1\n.*"ready":true/s);
  });

  test('pass the checks of every HTTP port (H4)', async () => {
    const socket = connect(at, '127.0.0.1');
    socket.end('GET /health HTTP/1.1\r\nhost: evil.example\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1.1 403/);
  });

  test('have the time limits of a server that listens itself (H1)', async () => {
    const socket = connect(at, '127.0.0.1');
    socket.write('GET /health HTTP/1.1\r\nhost: 127.');
    expect(await text(socket)).toMatch(/^HTTP\/1.1 408/);
  });

  test('are bounded in total, as those of a server that listens itself (H1)', async () => {
    const few = serveHttpConnections({ ...services, limits: { ...services.limits, connectionsMax: 2 } });
    const before = http;
    http = few;
    const sockets = [1, 2].map(() => connect(at, '127.0.0.1'));
    for (const socket of sockets) {
      socket.write('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
      await once(socket, 'data');
    }
    const third = connect(at, '127.0.0.1');
    third.write('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
    expect(await text(third).catch(() => '')).toBe('');
    for (const socket of sockets) socket.destroy();
    await few.stop();
    http = before;
  });

  test('end with a stop, and none is taken afterwards', async () => {
    await (await fetch(`http://127.0.0.1:${at}/health`)).text();
    await http.stop();
    await expect(fetch(`http://127.0.0.1:${at}/health`)).rejects.toThrow();
  });
});
