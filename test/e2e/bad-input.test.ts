import { connect as connectSocket, type Socket } from 'node:net';
import { Client, credentials, type ServiceError as GrpcError, Metadata } from '@grpc/grpc-js';
import { BUILD_VERSIONS, dialFrames, nodeClock, OPENING, rangeText, SeededRandom, type StreamEnd } from '@remora/base';
import { PIPE_HELLO, RPC_SERVICE } from '@remora/protocol';
import { PutRequest } from '@remora/protocol/etcd';
import { KVClient, RemoraLockClient } from '@remora/protocol/grpc-clients';
import { connect, type RemoraClient } from 'remora';
import { AdminClient } from 'remora/admin';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;
let client: RemoraClient;
let pid: number;

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
  client = await connect({ endpoints: cluster.endpoints });
  pid = cluster.node(1).pid;
});
afterEach(async () => {
  // Whatever came in, the same process goes on serving.
  await client.kv.put('alive', 'yes');
  expect(cluster.node(1).pid).toBe(pid);
});
afterAll(async () => {
  await client?.close();
  await cluster?.stop();
});

const MIB = 2 ** 20;

describe('the SDK is told', () => {
  const rows: readonly { name: string; ask: () => Promise<unknown>; code: string; says: RegExp }[] = [
    { name: 'an empty key', ask: () => client.kv.put('', 'v'), code: 'EMPTY_KEY', says: /key/ },
    {
      name: 'a value above 1.5 MiB',
      ask: () => client.kv.put('k', Buffer.alloc(1.5 * MIB + 1)),
      code: 'REQUEST_TOO_LARGE',
      says: /1572864/,
    },
    {
      name: 'a transaction with 129 operations',
      ask: () => client.kv.txn({ success: Array.from({ length: 129 }, (_, i) => ({ put: `k${i}`, value: 'v' })) }),
      code: 'TOO_MANY_OPERATIONS',
      says: /too many operations/,
    },
    {
      name: 'a transaction that puts a key twice',
      ask: () =>
        client.kv.txn({
          success: [
            { put: 'k', value: '1' },
            { put: 'k', value: '2' },
          ],
        }),
      code: 'DUPLICATE_KEY',
      says: /once|duplicate/,
    },
    {
      name: 'a lease that nobody granted',
      ask: () => client.kv.put('k', 'v', { lease: 4711n }),
      code: 'LEASE_NOT_FOUND',
      says: /4711/,
    },
    { name: 'a lease that is revoked twice', ask: () => revokeTwice(), code: 'LEASE_NOT_FOUND', says: /lease/ },
    { name: 'a revision that is compacted', ask: () => readCompacted(), code: 'COMPACTED', says: /compacted/ },
    {
      name: 'a revision in the future',
      ask: () => client.kv.get('k', { revision: 2 ** 40 }),
      code: 'FUTURE_REVISION',
      says: /future/,
    },
    {
      name: 'a lock without a name',
      ask: () => client.lock('').acquire({ wait: 0 }),
      code: 'INVALID_ARGUMENT',
      says: /name/,
    },
    {
      name: 'a lock name above 1 KiB',
      ask: () => client.lock('x'.repeat(1025)).acquire({ wait: 0 }),
      code: 'INVALID_ARGUMENT',
      says: /name.*1024/,
    },
    {
      name: 'a write under a lock without a name',
      ask: () => client.kv.put('k', 'v', { fence: { name: '', version: 1 } }),
      code: 'INVALID_ARGUMENT',
      says: /name/,
    },
    {
      name: 'a write under a version that nobody can have',
      ask: () => client.kv.put('k', 'v', { fence: { name: 'l', version: 1.5 } }),
      code: 'INVALID_ARGUMENT',
      says: /version/,
    },
    {
      name: 'lock data above 4 KiB',
      ask: () => client.lock('data').acquire({ wait: 0, data: Buffer.alloc(4097) }),
      code: 'INVALID_ARGUMENT',
      says: /data/,
    },
  ];

  test.each(rows)('of $name', async ({ ask, code, says }) => {
    const error = await ask().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(says) });
  });

  test('nothing of a limit itself: 1.5 MiB less the key, 128 operations, a name of 1 KiB', async () => {
    await client.kv.put('k', Buffer.alloc(1.5 * MIB - 1));
    await client.kv.txn({ success: Array.from({ length: 128 }, (_, i) => ({ put: `k${i}`, value: 'v' })) });
    await (await client.lock('x'.repeat(1024)).acquire({ wait: 0 })).release();
  });
});

describe('over gRPC', () => {
  const noCredentials = credentials.createInsecure();

  test('a lock is refused to a session that never was, and to an owner that does not hold it', async () => {
    const locks = new RemoraLockClient(cluster.node(1).client, noCredentials);
    try {
      const opened = await call<{ session: { id: bigint; incarnation: bigint } | undefined }>((done) =>
        locks.openSession({ ttlMs: 10_000n, attributes: {}, requestId: '', condition: undefined }, done),
      );
      const { session } = opened;
      if (session === undefined) throw new Error('no session');
      const lock = { namespace: '', name: Buffer.from('owned') };
      const acquire = (owner: { session: typeof session; token: string }) =>
        call((done) =>
          locks.acquire(
            {
              lock,
              owner,
              wait: false,
              timeoutMs: 0n,
              attempt: 1,
              depthMax: 1,
              data: Buffer.alloc(0),
              requestId: '',
              as: undefined,
              keepData: false,
              delayMs: 0,
            },
            done,
          ),
        );
      const release = (owner: { session: typeof session; token: string }) =>
        call((done) => locks.release({ lock, owner, all: true, attempt: 1, requestId: '' }, done));
      await acquire({ session, token: 'mine' });
      const stale = { ...session, incarnation: session.incarnation + 1_000n };
      expect(await codeOf(acquire({ session: stale, token: 'mine' }))).toBe('SESSION_EXPIRED');
      expect(await codeOf(release({ session, token: 'not mine' }))).toBe('LOCK_WRONG_OWNER');
      await call((done) => locks.closeSession({ session, requestId: '' }, done));
      expect(await codeOf(acquire({ session, token: 'mine' }))).toBe('SESSION_EXPIRED');
      expect(await codeOf(release({ session, token: 'mine' }))).toMatch(/^(LOCK_NOT_HELD|SESSION_EXPIRED)$/);
    } finally {
      locks.close();
    }
  });

  test.each(['colour', 'constructor', '__proto__'])('%s is refused as a measure of load', async (by) => {
    const operators = new AdminClient({ endpoints: cluster.endpoints, timeoutMs: 30_000, connectTimeoutMs: 30_000 });
    try {
      await expect(operators.hotRanges(by, 1)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    } finally {
      operators.close();
    }
  });

  test('a message far above the limit is refused, and the next one is served', async () => {
    const kv = new KVClient(cluster.node(1).client, noCredentials);
    try {
      const put = (bytes: number) =>
        call((done) => kv.put(PutRequest.fromPartial({ key: Buffer.from('k'), value: Buffer.alloc(bytes) }), done));
      await expect(put(20 * MIB)).rejects.toMatchObject({ code: 8 });
      await put(10);
    } finally {
      kv.close();
    }
  });

  test.each(['/etcdserverpb.KV/Put', '/etcdserverpb.KV/Txn', '/remora.v1.Lock/Acquire', '/no.such.Service/Method'])(
    'bytes that are no message are refused by %s',
    async (path) => {
      const raw = new Client(cluster.node(1).client, noCredentials);
      try {
        const random = new SeededRandom(1);
        // A first field that claims to be longer than the message: no decoder can make sense of it.
        const lie = Buffer.from('0affffffff0f', 'hex');
        for (let i = 0; i < 20; i++) {
          const answer = call((done) =>
            raw.makeUnaryRequest(
              path,
              (bytes: Buffer) => bytes,
              String,
              Buffer.concat([lie, random.bytes(random.int(100))]),
              new Metadata(),
              done,
            ),
          );
          await expect(answer).rejects.toMatchObject({ code: expect.any(Number) });
        }
      } finally {
        raw.close();
      }
    },
  );
});

describe('in frames', () => {
  test.each([
    { port: 'client', hello: PIPE_HELLO },
    {
      port: 'peer',
      hello: { service: RPC_SERVICE, versions: rangeText(BUILD_VERSIONS), cluster: '', node: '0', incarnation: 'i' },
    },
  ] as const)('frames that are no calls end a stream at the $port port, with the reason', async ({ port, hello }) => {
    const random = new SeededRandom(2);
    const ended = new Promise<StreamEnd>((resolve) => {
      const stream = dialFrames(
        cluster.node(1)[port],
        hello,
        { clock: nodeClock() },
        {
          onHello() {
            for (let i = 0; i < 20; i++) stream.send(random.bytes(1 + random.int(2_000)));
          },
          onFrame() {},
          onDrain() {},
          onEnd: resolve,
        },
      );
    });
    expect((await ended).code).toBe('INVALID_ARGUMENT');
  });

  test.each([
    {
      name: 'the Pipe of a much later release',
      port: 'client',
      hello: { ...PIPE_HELLO, versions: '9.0-9.1' },
      says: 'install Remora 9.0 or later for the gateway',
      code: 'VERSION_REFUSED',
    },
    {
      name: 'the Pipe of a release without versions',
      port: 'client',
      hello: { service: PIPE_HELLO.service ?? '', protocol: '3' },
      says: 'the client does not name its versions',
      code: 'VERSION_REFUSED',
    },
    {
      name: 'a service of nodes',
      port: 'client',
      hello: { service: RPC_SERVICE },
      says: "no service 'rpc'",
      code: 'UNIMPLEMENTED',
    },
    {
      name: 'the Pipe, at the port of nodes',
      port: 'peer',
      hello: PIPE_HELLO,
      says: "no service 'pipe'",
      code: 'UNIMPLEMENTED',
    },
  ] as const)(
    'a caller that asks for $name gets an error that says what is wrong',
    async ({ port, hello, says, code }) => {
      const ended = new Promise<StreamEnd>((resolve) => {
        const handlers = { onHello() {}, onFrame() {}, onDrain() {}, onEnd: resolve };
        dialFrames(cluster.node(1)[port], hello, { clock: nodeClock() }, handlers);
      });
      expect(await ended).toEqual({ code, message: expect.stringContaining(says) });
    },
  );

  test.each([
    { port: 'http', says: /does not speak this protocol/ },
    { port: 'peer', says: /no service 'pipe' at this port/ },
  ] as const)(
    'a client that was given the $port port is told why it finds no gateway there',
    async ({ port, says }) => {
      const refused = connect({ endpoints: cluster.node(1)[port], connectTimeout: '150ms' });
      // With DEADLINE_EXCEEDED, or UNAVAILABLE when the last attempt fails as the time is over.
      await expect(refused).rejects.toThrow(says);
    },
  );
});

describe('garbage on a port', () => {
  const random = new SeededRandom(3);
  const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  const garbage: readonly (readonly [string, Buffer])[] = [
    ['random bytes', random.bytes(65_536)],
    ['zeros', Buffer.alloc(65_536)],
    ['an endless HTTP header', Buffer.from(`GET / HTTP/1.1\r\nx: ${'y'.repeat(100_000)}`)],
    ['an HTTP/2 preface and random bytes', Buffer.concat([Buffer.from(PREFACE), random.bytes(65_536)])],
    ['an opening and random bytes', Buffer.concat([OPENING, random.bytes(65_536)])],
    ['a frame that is announced as 1 GiB', Buffer.concat([OPENING, Buffer.from('ffffffff', 'hex')])],
    ['a TLS hello', Buffer.from('160301020001000001fc0303', 'hex')],
  ];

  test.each(['client', 'peer', 'http'] as const)('%s: every kind of it leaves the node well', async (port) => {
    for (const [, bytes] of garbage) await throwAt(cluster.node(1).ports[port], bytes);
    await eventually('HTTP answers', async () => (await fetch(`http://${cluster.node(1).http}/health`)).ok);
    const fresh = await connect({ endpoints: cluster.endpoints });
    await fresh.kv.put('alive', 'still');
    await fresh.close();
    expect(cluster.node(1).log()).not.toMatch(/"level":"(error|fatal)"/);
  });
});

/** Sends and waits until the node has hung up, or until it is clear that it waits for more. */
function throwAt(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connectSocket(port, '127.0.0.1', () => socket.write(bytes));
    const patience = setTimeout(() => socket.destroy(), 500);
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.on('close', () => {
      clearTimeout(patience);
      resolve();
    });
  });
}

function call<Reply>(send: (done: (error: GrpcError | null, reply?: Reply) => void) => unknown): Promise<Reply> {
  return new Promise((resolve, reject) => {
    send((error, reply) => (error === null ? resolve(reply as Reply) : reject(error)));
  });
}

/** Remora's own code of a refusal. */
async function codeOf(answer: Promise<unknown>): Promise<string> {
  const error = await answer.then(
    () => undefined,
    (reason: GrpcError) => reason,
  );
  return String(error?.metadata.get('remora-code')[0] ?? error?.message ?? 'no error');
}

async function revokeTwice(): Promise<void> {
  const { id } = await client.lease.grant('10s');
  await client.lease.revoke(id);
  await client.lease.revoke(id);
}

async function readCompacted(): Promise<unknown> {
  const { revision } = await client.kv.put('compacted', '1');
  const { revision: later } = await client.kv.put('compacted', '2');
  await client.kv.compact(later);
  return client.kv.get('compacted', { revision });
}
