import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GRPC_STATUS, GrpcConnection, type GrpcError, PING_INTERVAL_MS } from './grpc-connection.ts';

const ECHO = {
  path: '/test.Echo/Echo',
  requestSerialize: (request: Buffer) => request,
  responseDeserialize: (bytes: Buffer) => bytes,
};
const OPTIONS = { timeoutMs: 20_000, token: undefined };
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

const ended: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const end of ended.splice(0)) end();
});

async function listening(server: Http2Server | Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ended.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A connection to a server that does this with every call, once it has got all of the request. */
async function connected(serve: (stream: ServerHttp2Stream, request: Buffer) => void): Promise<GrpcConnection> {
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => serve(stream, Buffer.concat(chunks)));
  });
  server.on('session', (session) => ended.push(() => session.destroy()));
  return opened(await listening(server));
}

async function opened(address: string): Promise<GrpcConnection> {
  const connection = await GrpcConnection.open(address, { tls: undefined, timeoutMs: 5_000 });
  if (connection === undefined) throw new Error(`no connection to ${address}`);
  ended.push(() => connection.close());
  return connection;
}

/** Answers with this body and these trailers. */
function answer(stream: ServerHttp2Stream, body: Buffer, trailers: Record<string, string>): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
}

function failure(connection: GrpcConnection, options: Partial<typeof OPTIONS> = {}): Promise<GrpcError> {
  return connection.call(ECHO, Buffer.from('x'), { ...OPTIONS, ...options }).then(
    () => expect.unreachable(),
    (error) => error,
  );
}

describe('a unary call', () => {
  test('sends one message, and returns one that comes in pieces', async () => {
    const connection = await connected((stream, request) => answer(stream, request, { 'grpc-status': '0' }));
    const large = Buffer.alloc(300_000, 'large');
    expect(await connection.call(ECHO, large, OPTIONS)).toEqual(large);
    expect(await connection.call(ECHO, Buffer.of(), OPTIONS)).toEqual(Buffer.of());
  });

  test('carries its token and its time limit', async () => {
    const seen: unknown[] = [];
    const server = createServer();
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      seen.push([headers[':path'], headers.token, headers['grpc-timeout'], headers.te]);
      answer(stream, Buffer.alloc(5), { 'grpc-status': '0' });
    });
    server.on('session', (session) => ended.push(() => session.destroy()));
    const connection = await opened(await listening(server));
    await connection.call(ECHO, Buffer.of(), { timeoutMs: 1_500, token: 'secret' });
    await connection.call(ECHO, Buffer.of(), { timeoutMs: 250.5, token: undefined });
    expect(seen).toEqual([
      ['/test.Echo/Echo', 'secret', '1500m', 'trailers'],
      ['/test.Echo/Echo', undefined, '251m', 'trailers'],
    ]);
  });

  const { INTERNAL, RESOURCE_EXHAUSTED, UNAVAILABLE, UNIMPLEMENTED, UNKNOWN } = GRPC_STATUS;
  const refusal = { 'grpc-status': '3', 'remora-code': 'INVALID_ARGUMENT', 'grpc-message': 'gr%C3%BCn, 100%25' };
  test.each<{
    readonly name: string;
    readonly serve: (stream: ServerHttp2Stream) => void;
    readonly error: Partial<GrpcError>;
  }>([
    {
      name: 'an error of the node with its code (GC1)',
      serve: (stream) => answer(stream, Buffer.of(), refusal),
      error: { status: 3, isAnswer: true, code: 'INVALID_ARGUMENT', message: 'grün, 100%' },
    },
    {
      name: 'an error in one block of headers',
      serve: (stream) => stream.respond({ ...HEAD, ...refusal }, { endStream: true }),
      error: { status: 3, isAnswer: true, code: 'INVALID_ARGUMENT' },
    },
    {
      name: 'a code that this version does not know',
      serve: (stream) =>
        stream.respond({ ...HEAD, 'grpc-status': '12', 'remora-code': 'TOO_BLUE' }, { endStream: true }),
      error: { status: UNIMPLEMENTED, isAnswer: true },
    },
    {
      name: 'a message that is not encoded as it should be',
      serve: (stream) => stream.respond({ ...HEAD, 'grpc-status': '13', 'grpc-message': '100%' }, { endStream: true }),
      error: { status: INTERNAL, message: '100%' },
    },
    {
      name: 'a compressed message',
      serve: (stream) => answer(stream, Buffer.from([1, 0, 0, 0, 1, 0]), { 'grpc-status': '0' }),
      error: { status: INTERNAL },
    },
    {
      name: 'a message that is cut off',
      serve: (stream) => answer(stream, Buffer.from([0, 0, 0, 0, 9, 0]), { 'grpc-status': '0' }),
      error: { status: INTERNAL },
    },
    {
      name: 'two messages',
      serve: (stream) => answer(stream, Buffer.alloc(10), { 'grpc-status': '0' }),
      error: { status: INTERNAL },
    },
    {
      name: 'no message',
      serve: (stream) => answer(stream, Buffer.of(), { 'grpc-status': '0' }),
      error: { status: INTERNAL },
    },
    {
      name: 'an answer beyond the bound',
      serve: (stream) => answer(stream, Buffer.alloc(5 << 20), { 'grpc-status': '0' }),
      error: { status: RESOURCE_EXHAUSTED },
    },
    {
      name: 'a server that is no node',
      serve: (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
      error: { status: UNKNOWN, message: 'not a node of Remora: it answered with HTTP 404' },
    },
    {
      name: 'a stream that the node resets',
      serve: (stream) => stream.close(2),
      error: { status: UNAVAILABLE },
    },
    {
      name: 'an answer without its end',
      serve: (stream) => {
        stream.respond(HEAD);
        stream.end();
      },
      error: { status: UNAVAILABLE },
    },
    {
      name: 'a connection that breaks',
      serve: (stream) => stream.session?.destroy(),
      error: { status: UNAVAILABLE },
    },
  ])('fails with $name', async ({ serve, error }) => {
    expect(await failure(await connected(serve))).toMatchObject({ isAnswer: false, code: undefined, ...error });
  });

  test('ends at its time limit, and others on the connection continue (GC2)', async () => {
    const waiting: ServerHttp2Stream[] = [];
    const connection = await connected((stream) => void waiting.push(stream));
    const other = connection.call(ECHO, Buffer.of(), OPTIONS);
    expect(await failure(connection, { timeoutMs: 50 })).toMatchObject({ status: GRPC_STATUS.DEADLINE_EXCEEDED });
    const [first] = waiting;
    if (first === undefined) return expect.unreachable();
    answer(first, Buffer.alloc(5), { 'grpc-status': '0' });
    expect(await other).toEqual(Buffer.of());
  });

  test('may finish after the connection was closed', async () => {
    const connection = await connected((stream, request) => {
      connection.close();
      answer(stream, request, { 'grpc-status': '0' });
    });
    expect(await connection.call(ECHO, Buffer.from('last'), OPTIONS)).toEqual(Buffer.from('last'));
    expect(connection.isOpen).toBe(false);
    expect(await failure(connection)).toMatchObject({ status: GRPC_STATUS.UNAVAILABLE });
  });
});

/** A server that sends its settings, acknowledges the client's, and is silent from then on. */
function hanging(): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]));
    ended.push(() => socket.destroy());
  });
  return listening(server);
}

test('a node that hangs is detected while a call is open (GC3)', async () => {
  const connection = await opened(await hanging());
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] });
  const failed = failure(connection, { timeoutMs: 60_000 });
  await vi.advanceTimersByTimeAsync(PING_INTERVAL_MS - 1);
  expect(connection.isOpen).toBe(true);
  await vi.advanceTimersByTimeAsync(2_001);
  expect(await failed).toMatchObject({ status: GRPC_STATUS.UNAVAILABLE, message: expect.stringContaining('it hangs') });
  expect(connection.isOpen).toBe(false);
});

test('a slow node that answers pings keeps its call', async () => {
  const waiting: ServerHttp2Stream[] = [];
  const connection = await connected((stream) => void waiting.push(stream));
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] });
  const slow = connection.call(ECHO, Buffer.of(), { timeoutMs: 60_000, token: undefined });
  await vi.waitFor(() => expect(waiting).toHaveLength(1));
  for (let pings = 0; pings < 3; pings++) {
    const answered = new Promise((resolve) => waiting[0]?.session?.once('ping', resolve));
    await vi.advanceTimersByTimeAsync(PING_INTERVAL_MS);
    await answered;
    // The answer to the ping is on its way.
    await new Promise((resolve) => waiting[0]?.session?.ping(() => resolve(undefined)));
  }
  for (const stream of waiting) answer(stream, Buffer.alloc(5), { 'grpc-status': '0' });
  expect(await slow).toEqual(Buffer.of());
});

test.each([
  { name: 'does not listen', address: async () => '127.0.0.1:1' },
  {
    name: 'does not speak HTTP/2',
    address: () => listening(createTcpServer((socket) => socket.on('error', () => undefined).end('no\n'))),
  },
  {
    name: 'is silent',
    address: () => listening(createTcpServer((socket) => void ended.push(() => socket.destroy()))),
  },
])('a server that $name has no connection', async ({ address }) => {
  expect(await GrpcConnection.open(await address(), { tls: undefined, timeoutMs: 300 })).toBeUndefined();
});
