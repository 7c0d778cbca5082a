/** TLS at an HTTP port. */
import { request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { nodeClock, silentLogger } from '@remora/base';
import { TlsAcceptor, type TlsAcceptorOptions, TlsIdentity } from '@remora/base/node';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { readRevocationLists } from '../../src/certs/revocation-lists.ts';
import { API_LIMITS, type HttpLimits, startHttpServer } from '../../src/node/ports/http-server.ts';
import { TestAuthority, TestFiles } from './authority.ts';

const clock = nodeClock();
let ca: TestAuthority;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  ca = await TestAuthority.make();
});
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function startPort(given: Partial<TlsAcceptorOptions> = {}, limits: Partial<HttpLimits> = {}): Promise<number> {
  const files = new TestFiles();
  const { certificate, key } = files.writePair('node', await ca.server());
  const set = {
    certificate: { path: certificate, option: '--cert' },
    key: { path: key, option: '--key' },
    ca: { path: files.write('ca.crt', ca.certificate), option: '--ca' },
    isMutual: false,
  };
  const deps = { clock, logger: silentLogger, readRevocations: readRevocationLists, purpose: 'client' };
  const identity = await TlsIdentity.open(set, deps);
  const options = { isRequired: true, clientCertificates: 'off', protocols: ['http/1.1'], ...given } as const;
  const server = await startHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, flag: '--http-listen', names: new Set<string>() },
    limits: { ...API_LIMITS, ...limits },
    logger: silentLogger,
    secure: new TlsAcceptor(options, { identity, clock, logger: silentLogger }),
    health: () => ({ ok: true, reasons: [] }),
    ready: () => ({ ok: true, reasons: [] }),
    metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
  });
  cleanups.push(
    () => identity.stop(),
    () => files.close(),
    () => server.stop(),
  );
  return server.port;
}

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

function get(port: number, tls: object | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const target = { host: '127.0.0.1', port, path: '/metrics' };
    const send = tls === undefined ? plainRequest : request;
    const sent = send({ ...target, ...tls }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject);
    });
    sent.on('error', reject).end();
  });
}

const trusting = () => ({ ca: ca.certificate });

test('requests are answered over TLS, several on one connection', async () => {
  const port = await startPort();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanups.push(() => agent.destroy());
  for (let i = 0; i < 3; i++) {
    expect(await get(port, { ...trusting(), agent })).toEqual({ status: 200, body: 'up 1\n' });
  }
});

test('a request in plain text is refused with the advice to use https, or answered where both are allowed', async () => {
  expect(await get(await startPort(), undefined)).toMatchObject({
    status: 400,
    body: expect.stringContaining('https://'),
  });
  expect(await get(await startPort({ isRequired: false }), undefined)).toEqual({ status: 200, body: 'up 1\n' });
});

test('a request without the required certificate is refused with the reason', async () => {
  const port = await startPort({ clientCertificates: 'required' });
  const refused = { status: 403, body: expect.stringContaining('requires a client certificate') };
  expect(await get(port, { ...trusting(), agent: new Agent() })).toMatchObject(refused);
  const { certificate: cert, key } = await ca.client('ann');
  expect(await get(port, { ...trusting(), cert, key, agent: new Agent() })).toMatchObject({ status: 200 });
});

test('connections that do not go on are closed in time, and one address cannot have all of them (H1)', async () => {
  const port = await startPort({}, { connectionsPerAddressMax: 5, headersTimeoutMs: 2_000 });
  const sockets = Array.from({ length: 8 }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write(Buffer.of(0x16));
    cleanups.push(() => socket.destroy());
    return socket;
  });
  const closed = (): number => sockets.filter(({ destroyed }) => destroyed).length;
  await expect.poll(closed).toBe(3);
  await expect.poll(closed).toBe(8);
  expect(await get(port, { ...trusting(), agent: new Agent() })).toMatchObject({ status: 200 });
});
