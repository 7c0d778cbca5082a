/** Who is answered, over real sockets: a parser between here and there would tidy up what is tried. */
import { connect, type Socket } from 'node:net';
import { silentLogger } from '@remora/base';
import { API_LIMITS, type HttpServerOptions, type RunningHttpServer, startHttpServer } from '@remora/cli';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const NAMES: ReadonlySet<string> = new Set(['n1.example.com', 'balancer']);
const PATHS = ['/health', '/ready', '/metrics', '/openapi.json', '/v1/locks/default/l', '/nothing'];

let server: RunningHttpServer;
let handled: number;

async function start(options: Partial<HttpServerOptions> = {}): Promise<void> {
  handled = 0;
  server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', limits: API_LIMITS, names: NAMES },
    logger: silentLogger,
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
    handlers: [
      {
        paths: ['/v1/', '/openapi.json'],
        handle(_request, response) {
          handled++;
          response.end('{}');
        },
      },
    ],
    ...options,
  });
}

beforeEach(() => start());
afterEach(() => server.stop());

/** Sends and reads until the server has hung up. */
function exchange(text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(server.port, '127.0.0.1', () => socket.end(text));
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}

function get(path: string, headers: readonly string[], version = '1.1'): Promise<string> {
  return exchange(`GET ${path} HTTP/${version}\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`);
}

const statusOf = (answer: string): number => Number(answer.split(' ', 2)[1]);

describe('Host', () => {
  test.each([
    '127.0.0.1',
    '127.0.0.1:7482',
    '10.1.2.3:80',
    '[::1]',
    '[::1]:7482',
    '[2001:DB8::7]:7482',
    'localhost',
    'localhost:7482',
    'localhost:',
    'LocalHost:7482',
    'localhost.',
    'n1.example.com:7482',
    'N1.Example.COM.:7482',
    'balancer',
  ])('%s is answered', async (host) => {
    expect(statusOf(await get('/v1/x', [`Host: ${host}`]))).toBe(200);
    expect(statusOf(await get('/health', [`host: ${host}`], '1.0'))).toBe(200);
  });

  test.each([
    { name: 'a name that a rebinding attacker chose', host: 'evil.example:7482', status: 403 },
    { name: 'a name below an allowed one', host: 'x.balancer', status: 403 },
    { name: 'an allowed name below another', host: 'balancer.evil.example', status: 403 },
    { name: 'a name that begins like an address', host: '127.0.0.1.evil.example', status: 403 },
    { name: 'a name that ends like localhost', host: 'notlocalhost', status: 403 },
    { name: 'localhost of somebody', host: 'localhost.evil.example', status: 403 },
    { name: 'an address in an unusual notation', host: '0x7f.1', status: 403 },
    { name: 'an address as one number', host: '2130706433', status: 403 },
    { name: 'a user in front', host: 'localhost@evil.example', status: 400 },
    { name: 'a user and a password in front', host: 'localhost:7482@evil.example', status: 400 },
    { name: 'a user in front of an allowed name', host: 'evil.example@localhost', status: 400 },
    { name: 'a path behind it', host: 'localhost/evil', status: 400 },
    { name: 'two names', host: 'localhost, evil.example', status: 400 },
    { name: 'two names with a space', host: 'localhost evil.example', status: 400 },
    { name: 'percent-encoding', host: 'localhos%74', status: 400 },
    { name: 'an IPv6 address without brackets', host: '::1', status: 400 },
    { name: 'no IPv6 address in brackets', host: '[::g]', status: 400 },
    { name: 'a name in brackets', host: '[localhost]', status: 400 },
    { name: 'a port that is none', host: 'localhost:7482x', status: 400 },
    { name: 'a port beyond 65535', host: 'localhost:65536', status: 400 },
    { name: 'a name with two trailing dots', host: 'localhost..', status: 400 },
    { name: 'a scheme', host: 'http://localhost', status: 400 },
    { name: 'nothing', host: '', status: 400 },
  ])('$name is refused on every path', async ({ host, status }) => {
    for (const path of PATHS) {
      for (const version of ['1.0', '1.1']) {
        expect([path, statusOf(await get(path, [`Host: ${host}`], version))]).toEqual([path, status]);
      }
    }
    expect(handled).toBe(0);
  });

  test('a missing Host is refused in both versions, several are refused, also when they agree', async () => {
    for (const version of ['1.0', '1.1']) {
      for (const hosts of [[], ['Host: localhost', 'Host: evil.example'], ['Host: localhost', 'host: localhost']]) {
        expect(statusOf(await get('/v1/x', hosts, version))).toBe(400);
      }
    }
    expect(handled).toBe(0);
  });

  test('a refusal says what to do, and what it quotes is a plain name', async () => {
    const answer = await get('/health', ['Host: Evil.Example:7482']);
    expect(answer).toContain('"code":"INVALID_ARGUMENT"');
    expect(answer).toContain('start the node with --http-allowed-hosts evil.example"');
    expect(answer.toLowerCase()).not.toContain('access-control');
  });

  test.each([
    'http://localhost/v1/x',
    'http://evil.example/v1/x',
    'http://evil.example@localhost/v1/x',
    'HTTP://localhost/health',
    '*',
  ])('the target %s is refused, whatever Host says', async (target) => {
    expect(statusOf(await exchange(`OPTIONS ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`))).toBe(400);
    expect(handled).toBe(0);
  });

  test('a target that looks like an authority is a path, and there is nothing at it', async () => {
    expect(statusOf(await get('//evil.example/v1/x', ['Host: localhost']))).toBe(404);
  });
});

describe('web pages', () => {
  test.each(['cross-site', 'same-site', 'Same-Origin', '', 'none, cross-site', 'anything'])(
    'Sec-Fetch-Site: %s is refused on every path',
    async (site) => {
      for (const path of PATHS) {
        expect(statusOf(await get(path, ['Host: localhost', `Sec-Fetch-Site: ${site}`]))).toBe(403);
      }
      expect(handled).toBe(0);
    },
  );

  test('what the user typed, and the own origin, are answered; one of two values is not', async () => {
    for (const site of ['none', 'same-origin']) {
      expect(statusOf(await get('/v1/x', ['Host: localhost', `Sec-Fetch-Site: ${site}`]))).toBe(200);
    }
    const both = ['Host: localhost', 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'];
    expect(statusOf(await get('/v1/x', both))).toBe(403);
  });

  test.each([
    { origin: 'http://localhost:7482', status: 200 },
    { origin: 'https://localhost:7482', status: 200 },
    { origin: 'http://localhost:3000', status: 403 },
    { origin: 'http://localhost', status: 403 },
    { origin: 'http://evil.example', status: 403 },
    { origin: 'null', status: 403 },
    { origin: '', status: 403 },
  ])('Origin: $origin is answered with $status', async ({ origin, status }) => {
    const headers = ['Host: localhost:7482', `Origin: ${origin}`];
    for (const path of ['/v1/x', '/metrics']) expect(statusOf(await get(path, headers))).toBe(status);
  });

  test('a page that rebinds a name of its own is of one origin with it, and refused nevertheless', async () => {
    const headers = ['Host: evil.example:7482', 'Origin: http://evil.example:7482', 'Sec-Fetch-Site: same-origin'];
    for (const path of PATHS) expect(statusOf(await get(path, headers))).toBe(403);
    expect(handled).toBe(0);
  });
});

describe('connections', () => {
  const silent: Socket[] = [];
  afterEach(() => {
    for (const socket of silent.splice(0)) socket.destroy();
  });

  /** Connects, says a part of a request, and waits until that was taken, or the server has hung up. */
  function begin(part: string): Promise<{ readonly closed: Promise<string> }> {
    return new Promise((resolve) => {
      let answer = '';
      const socket = connect(server.port, '127.0.0.1');
      silent.push(socket);
      const closed = new Promise<string>((done) => {
        socket.on('error', () => {});
        socket.on('close', () => done(answer));
      });
      socket.on('data', (data) => {
        answer += data;
      });
      socket.on('connect', () => socket.write(part, () => resolve({ closed })));
    });
  }

  test.each([
    { name: 'says nothing', part: '' },
    { name: 'begins a header', part: 'GET /health HTTP/1.1\r\nHost: localhost\r\nx' },
    { name: 'begins a body', part: 'POST /v1/x HTTP/1.1\r\nHost: localhost\r\ncontent-length: 9\r\n\r\nx' },
  ])('a client that $name is hung up on in time', async ({ part }) => {
    await server.stop();
    const handler = { paths: ['/v1/'], handle: () => {} };
    await start({ handlers: [handler], limits: { ...API_LIMITS, headersTimeoutMs: 300, requestTimeoutMs: 600 } });
    const beganMs = performance.now();
    await (await begin(part)).closed;
    // Node looks every 30 s unless it is told otherwise.
    expect(performance.now() - beganMs).toBeLessThan(15_000);
  });

  test('one address has a bounded number of them, and gets one again when one ends', async () => {
    await server.stop();
    await start({ limits: { ...API_LIMITS, connectionsPerAddressMax: 3 } });
    const held = await Promise.all([1, 2, 3].map(() => begin('GET')));
    expect(await (await begin('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')).closed).toBe('');
    silent[0]?.destroy();
    await held[0]?.closed;
    await expect.poll(() => get('/health', ['Host: localhost', 'connection: close'])).toContain(' 200 ');
  });
});
