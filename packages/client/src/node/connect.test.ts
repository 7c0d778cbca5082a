import { type AddressInfo, createServer, type Server } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AdminClient } from './admin-client.ts';
import { type ConnectOptions, connect } from './connect.ts';

/** The first byte of a TLS record with a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 0x16;

let server: Server;
let port: number;
/** The first byte that each connection sent. */
let heard: (number | undefined)[];

beforeEach(async () => {
  heard = [];
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      heard.push(data[0]);
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

/** Whether it speaks TLS to a server that hangs up on whatever it says. */
async function speaksTls(options: ConnectOptions): Promise<boolean> {
  await expect(connect({ connectTimeout: '300ms', ...options })).rejects.toThrow();
  expect(new Set(heard).size).toBe(1);
  return heard[0] === TLS_HANDSHAKE;
}

test.each([
  { name: 'https://', scheme: 'https://', tls: undefined, expected: true },
  { name: 'https:// and options for TLS', scheme: 'https://', tls: {}, expected: true },
  { name: 'options for TLS and no scheme', scheme: '', tls: {}, expected: true },
  { name: 'http://', scheme: 'http://', tls: undefined, expected: false },
  { name: 'no scheme', scheme: '', tls: undefined, expected: false },
])('with $name a client speaks TLS: $expected', async ({ scheme, tls, expected }) => {
  expect(await speaksTls({ endpoints: `${scheme}127.0.0.1:${port}`, tls })).toBe(expected);
});

test.each([
  { name: 'http:// with options for TLS', options: { endpoints: 'http://a:1', tls: {} }, says: 'tls is set' },
  { name: 'both schemes', options: { endpoints: ['http://a:1', 'https://b:1'] }, says: 'they mix http://' },
  {
    name: 'a function for TLS in a renewal thread',
    options: { endpoints: 'https://a:1', renewInWorker: true, tls: { checkServerIdentity: () => undefined } },
    says: 'cannot be passed to the renewal thread',
  },
  {
    name: 'a context for TLS in a renewal thread',
    options: { endpoints: 'https://a:1', renewInWorker: true, tls: { secureContext: createSecureContext() } },
    says: 'cannot be passed to the renewal thread',
  },
])('$name is refused', async ({ options, says }) => {
  await expect(connect(options)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(says),
  });
});

test('the client for administration speaks TLS where endpoints say https://, and nothing else', async () => {
  const limits = { timeoutMs: 300, connectTimeoutMs: 300 };
  const client = new AdminClient({ endpoints: [`https://127.0.0.1:${port}`], ...limits });
  await expect(client.nodes()).rejects.toThrow();
  client.close();
  expect(heard.length).toBeGreaterThan(0);
  expect(heard.every((byte) => byte === TLS_HANDSHAKE)).toBe(true);
  expect(() => new AdminClient({ endpoints: [`http://127.0.0.1:${port}`], tls: {}, ...limits })).toThrow('tls is set');
});
