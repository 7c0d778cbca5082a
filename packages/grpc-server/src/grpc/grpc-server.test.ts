// The server as grpc-js sees it, over real sockets, and gRPC's own rules on raw frames.
import { type AddressInfo, createServer, type Server } from 'node:net';
import { performance } from 'node:perf_hooks';
import { gzipSync } from 'node:zlib';
import {
  Client,
  type ClientDuplexStream,
  compressionAlgorithms,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ECHO, ECHOES } from '../../test/support/echo-service.ts';
import {
  dataFrame,
  FrameClient,
  headersFrame,
  message,
  numberFrame,
  unaryCall,
} from '../../test/support/frame-client.ts';
import { FLAG, FRAME } from '../../test/support/frames.ts';
import { ManualTimers } from '../../test/support/manual-timers.ts';
import type { Timers } from '../timers.ts';
import { GrpcServer } from './grpc-server.ts';
import type { Implementation } from './implementation.ts';
import type { GrpcLimits } from './limits.ts';
import { STATUS } from './status.ts';
import type { StreamCall } from './stream-call.ts';
import type { UnaryCall } from './unary-call.ts';

const TIMERS: Timers = {
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fn) => {
    const timer = setTimeout(fn, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  setImmediate: (fn) => void setImmediate(fn),
};

const same = (bytes: Buffer): Buffer => bytes;

describe('for grpc-js', () => {
  let methods: { -readonly [Name in keyof typeof ECHO]: Implementation<typeof ECHO>[Name] };
  let server: GrpcServer;
  let listener: Server;
  let client: Client;
  let errors: unknown[];

  beforeEach(async () => {
    methods = { ...ECHOES };
    errors = [];
    server = new GrpcServer({ timers: TIMERS, onMethodError: (error) => errors.push(error) });
    server.addService(ECHO, {
      unary: (call) => methods.unary(call),
      down: (call) => methods.down(call),
      up: (call) => methods.up(call),
      both: (call) => methods.both(call),
    });
    listener = createServer((socket) => server.accept(socket));
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    client = clientOf();
  });
  afterEach(() => {
    client.close();
    listener.close();
    server.close();
  });

  function clientOf(options: object = {}): Client {
    const { port } = listener.address() as AddressInfo;
    return new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options);
  }

  function unary(request: Buffer | string, metadata = new Metadata(), deadlineMs = 10_000, via = client) {
    return new Promise<{ readonly error: ServiceError | null; readonly reply: Buffer | undefined; trailers: Metadata }>(
      (resolve) => {
        let [error, reply]: [ServiceError | null, Buffer | undefined] = [null, undefined];
        const options = { deadline: Date.now() + deadlineMs };
        const call = via.makeUnaryRequest(
          ECHO.unary.path,
          same,
          same,
          Buffer.from(request as Buffer),
          metadata,
          options,
          (e, r) => {
            [error, reply] = [e, r];
          },
        );
        call.on('status', (status) => setImmediate(() => resolve({ error, reply, trailers: status.metadata })));
      },
    );
  }

  test('unary calls, also empty and of megabytes both ways', async () => {
    for (const bytes of [0, 1, 20, 16_384, 65_536, 3 << 20]) {
      const request = Buffer.alloc(bytes, 'abc');
      const { error, reply } = await unary(request);
      expect(error).toBeNull();
      expect(reply?.equals(request)).toBe(true);
    }
    expect(server.held).toEqual({ connections: 1, streams: 0, unfinishedBytes: 0, outputBytes: 0 });
  });

  test('hundreds of large calls at a time on one connection', async () => {
    const request = Buffer.alloc(200_000, 'abc');
    const answers = await Promise.all(Array.from({ length: 200 }, () => unary(request, undefined, 60_000)));
    expect(answers.every(({ reply }) => reply?.equals(request))).toBe(true);
    expect(server.held.unfinishedBytes).toBe(0);
  });

  test('metadata, text and bytes, of the request, of the beginning and of the end', async () => {
    let seen: unknown;
    methods.unary = (call) => {
      seen = [
        call.metadata.get('token'),
        call.metadata.getBinary('blob-bin'),
        [...call.metadata].map(({ name }) => name),
      ];
      call.sendMetadata({ early: 'yes' });
      call.respond(call.request, { late: 'a b', 'late-bin': Buffer.from([0, 255]) });
    };
    const metadata = new Metadata();
    metadata.set('token', 'secret');
    metadata.set('blob-bin', Buffer.from([1, 2, 254]));
    const { error, trailers } = await unary('x', metadata);
    expect(error).toBeNull();
    expect(seen).toEqual(['secret', [Buffer.from([1, 2, 254])], ['token', 'blob-bin']]);
    expect([trailers.get('late'), trailers.get('late-bin')]).toEqual([['a b'], [Buffer.from([0, 255])]]);
  });

  test.each(['plain', 'with a % and ü and 漢 \u{1f512}', ' spaces around ', 'two\nlines', ''])(
    'the status with the message %j',
    async (text) => {
      methods.unary = (call) => call.fail(STATUS.aborted, text, { why: 'because' });
      const { error } = await unary('x');
      expect(error).toMatchObject({ code: 10, details: text });
      expect(error?.metadata.get('why')).toEqual(['because']);
    },
  );

  test('a method that throws is answered with INTERNAL, and the error is passed on', async () => {
    methods.unary = () => {
      throw new Error('a bug');
    };
    expect((await unary('x')).error).toMatchObject({ code: STATUS.internal, details: 'the method failed' });
    expect(errors).toEqual([new Error('a bug')]);
  });

  test('what cannot be decoded, is unknown or too large', async () => {
    expect((await unary('undecodable')).error).toMatchObject({ code: STATUS.internal });
    const wrong = await new Promise<ServiceError | null>((resolve) => {
      client.makeUnaryRequest('/test.Echo/Nothing', same, same, Buffer.alloc(1), resolve);
    });
    expect(wrong).toMatchObject({ code: STATUS.unimplemented });
    expect((await unary(Buffer.alloc(20 << 20))).error).toMatchObject({ code: STATUS.resourceExhausted });
    expect((await unary('still there')).reply).toEqual(Buffer.from('still there'));
  });

  test('compressed requests', async () => {
    const zipping = clientOf({ 'grpc.default_compression_algorithm': compressionAlgorithms.gzip });
    const request = Buffer.alloc(100_000, 'abc');
    expect((await unary(request, undefined, 10_000, zipping)).reply?.equals(request)).toBe(true);
    zipping.close();
  });

  test('deadlines end calls, and their methods hear of it', async () => {
    let begun = 0;
    const done = new Promise<void>((resolve) => {
      methods.unary = (call) => {
        begun = call.deadlineMs ?? 0;
        call.onCancelled = resolve;
      };
    });
    // On a busy machine a deadline may be over before the call has left the client, or when it arrives.
    let timeoutMs = 50;
    do {
      timeoutMs *= 2;
      expect((await unary('x', undefined, timeoutMs)).error).toMatchObject({ code: STATUS.deadlineExceeded });
    } while (begun <= 0);
    await done;
    expect(begun).toBeLessThanOrEqual(timeoutMs + 1);
  });

  test('streams of requests and responses', async () => {
    const down = client.makeServerStreamRequest(ECHO.down.path, same, same, Buffer.from('abc'));
    const letters: string[] = [];
    for await (const letter of down) letters.push(String(letter));
    expect(letters).toEqual(['a', 'b', 'c']);

    const joined = await new Promise((resolve) => {
      const up = client.makeClientStreamRequest(ECHO.up.path, same, same, (error, reply) =>
        resolve(error ?? String(reply)),
      );
      for (const part of ['x', 'y', 'z']) up.write(Buffer.from(part));
      up.end();
    });
    expect(joined).toBe('xyz');

    const both = client.makeBidiStreamRequest(ECHO.both.path, same, same);
    const echoed: string[] = [];
    both.write(Buffer.from('1'));
    for await (const answer of both) {
      echoed.push(String(answer));
      if (echoed.length < 3) both.write(Buffer.from(String(echoed.length + 1)));
      else both.end();
    }
    expect(echoed).toEqual(['1', '2', '3']);
  });

  test('a stream whose client does not read holds back its method, and no other call', async () => {
    let [written, unread, drained]: [number, number, number] = [0, 0, 0];
    methods.down = (call) => {
      const write = (): void => {
        while (call.write(Buffer.alloc(10_000))) written++;
        unread = call.unread();
      };
      call.onDrain = () => {
        drained++;
        if (written < 5_000) write();
        else call.end();
      };
      call.onRequest = write;
    };
    const stream = client.makeServerStreamRequest(ECHO.down.path, same, same, Buffer.alloc(0));
    await expect.poll(() => unread).toBeGreaterThan(0);
    expect((await unary('x')).reply).toEqual(Buffer.from('x'));
    expect(written).toBeLessThan(4_000);
    let got = 0;
    for await (const _ of stream) got++;
    expect(got).toBeGreaterThanOrEqual(5_000);
    expect(drained).toBeGreaterThan(0);
    expect(server.held.outputBytes).toBe(0);
  });

  test('a cancelled stream, and a connection that breaks, reach the method', async () => {
    let cancelled = 0;
    methods.both = (call) => {
      call.write(Buffer.from('open'));
      call.onCancelled = () => cancelled++;
    };
    const open = (): Promise<ClientDuplexStream<Buffer, Buffer>> => {
      const stream = client.makeBidiStreamRequest(ECHO.both.path, same, same);
      stream.on('error', () => undefined);
      return new Promise((resolve) => stream.once('data', () => resolve(stream)));
    };
    (await open()).cancel();
    await expect.poll(() => cancelled).toBe(1);
    await open();
    server.close();
    expect(cancelled).toBe(2);
  });

  test('a drain lets calls finish, and turns clients away', async () => {
    let call: UnaryCall<Buffer, Buffer> | undefined;
    methods.unary = (each) => {
      call = each;
    };
    const answered = unary('x');
    await expect.poll(() => call).toBeDefined();
    const drained = server.drain();
    call?.respond(Buffer.from('done'));
    expect((await answered).reply).toEqual(Buffer.from('done'));
    await drained;
    expect(server.held.connections).toBe(0);
    await expect(unary('y', undefined, 300)).resolves.toMatchObject({ error: { code: expect.any(Number) } });
  });

  test('calls of one connection share an object', async () => {
    const seen = new Set<unknown>();
    methods.unary = (call) => {
      seen.add(call.connection);
      call.connection.state ??= 'kept';
      call.respond(Buffer.from(`${call.connection.peer} ${call.connection.state}`));
    };
    const replies = [await unary('1'), await unary('2')].map(({ reply }) => String(reply));
    expect(replies[0]).toMatch(/^127\.0\.0\.1:\d+ kept$/);
    expect([seen.size, replies[1]]).toEqual([1, replies[0]]);
  });
});

describe('on raw frames', () => {
  function setUp(limits: Partial<GrpcLimits> = {}, methods: Partial<Implementation<typeof ECHO>> = {}) {
    const timers = new ManualTimers();
    const refused: string[] = [];
    const server = new GrpcServer({ timers, limits, onRefused: (limit) => refused.push(limit) });
    server.addService(ECHO, { ...ECHOES, ...methods });
    return { timers, refused, server, client: FrameClient.of(server).greet() };
  }

  const status = (text: string): number => Number(/grpc-status: (\d+)/.exec(text)?.[1] ?? -1);

  const refusals: readonly { name: string; more: Record<string, string>; says: RegExp }[] = [
    { name: 'GET', more: { ':method': 'GET' }, says: /^:status: 405$/ },
    { name: 'another content type', more: { 'content-type': 'application/json' }, says: /^:status: 415$/ },
    { name: 'gRPC-Web', more: { 'content-type': 'application/grpc-web' }, says: /^:status: 415$/ },
    { name: 'an unknown method', more: { ':path': '/a/b' }, says: /grpc-status: 12\n.*the method \/a\/b/s },
    { name: 'a timeout without a unit', more: { 'grpc-timeout': '15' }, says: /grpc-status: 13/ },
    { name: 'a timeout of nine digits', more: { 'grpc-timeout': '123456789m' }, says: /grpc-status: 13/ },
    { name: 'headers without end', more: { big: 'x'.repeat(9_000) }, says: /grpc-status: 8/ },
  ];
  test.each(refusals)('$name is refused at once, and what follows is dropped', async ({ more, says }) => {
    const { client } = setUp({ headerListBytesMax: 8_000 });
    client.send(headersFrame(1, more), dataFrame(1, message('x'), FLAG.endStream), unaryCall(3, 'next'));
    await client.settle();
    expect(client.headers(1)[0]).toMatch(says);
    expect(client.resets(1)).toEqual([0]);
    expect(client.data(3)).toEqual(message('next'));
  });

  const bodies: readonly { name: string; body: Buffer; more?: Record<string, string>; code: number; says: RegExp }[] = [
    { name: 'no message', body: Buffer.alloc(0), code: 13, says: /before its request was whole/ },
    { name: 'half a prefix', body: Buffer.alloc(3), code: 13, says: /before its request was whole/ },
    { name: 'half a message', body: message('abc').subarray(0, 6), code: 13, says: /before its request was whole/ },
    { name: 'two messages', body: Buffer.concat([message('a'), message('b')]), code: 12, says: /more than one/ },
    {
      name: 'a message that is too long',
      body: Buffer.from('00ffffffff', 'hex'),
      code: 8,
      says: /4294967295 vs. 1000/,
    },
    {
      name: 'compression without an encoding',
      body: message(gzipSync('a'), 1),
      code: 13,
      says: /without grpc-encoding/,
    },
    {
      name: 'an unknown encoding',
      body: message(gzipSync('a'), 1),
      more: { 'grpc-encoding': 'snappy' },
      code: 12,
      says: /snappy.*grpc-accept-encoding: identity,gzip/s,
    },
    { name: 'no gzip', body: message('abc', 1), more: { 'grpc-encoding': 'gzip' }, code: 13, says: /inflated/ },
    {
      name: 'a bomb',
      body: message(gzipSync(Buffer.alloc(50_000)), 1),
      more: { 'grpc-encoding': 'gzip' },
      code: 8,
      says: /inflates to more than 1000/,
    },
  ];
  test.each(bodies)('$name', async ({ body, more, code, says }) => {
    const { client, server } = setUp({ messageBytesMax: 1_000 });
    for (const path of [ECHO.unary.path, ECHO.down.path]) {
      const id = path === ECHO.unary.path ? 1 : 3;
      client.send(headersFrame(id, { ':path': path, ...more }), dataFrame(id, body, FLAG.endStream));
    }
    await client.settle();
    for (const id of [1, 3]) {
      const answer = client.headers(id).join('\n');
      expect(status(answer)).toBe(code);
      expect(decodeURIComponent(answer)).toMatch(says);
    }
    expect(server.held).toMatchObject({ streams: 0, unfinishedBytes: 0 });
  });

  test('inflating has a budget for each second', async () => {
    const { client, timers, refused } = setUp({ inflatedBytesPerSecondMax: 5_000 });
    timers.advance(1_000);
    const call = (id: number): Buffer =>
      Buffer.concat([
        headersFrame(id, { 'grpc-encoding': 'gzip' }),
        dataFrame(id, message(gzipSync('a'), 1), FLAG.endStream),
      ]);
    client.send(call(1), call(3), call(5));
    await client.settle();
    timers.advance(1_000);
    client.send(call(7));
    await client.settle();
    expect([1, 3, 5, 7].map((id) => status(client.headers(id).join()))).toEqual([0, 0, 8, 0]);
    expect(refused).toEqual(['inflatedBytesPerSecondMax']);
  });

  test('a deadline is kept by the server as well', async () => {
    let cancelled = 0;
    const { client, timers } = setUp(
      {},
      {
        both: (call) => {
          call.onCancelled = () => cancelled++;
        },
      },
    );
    client.send(headersFrame(1, { ':path': ECHO.both.path, 'grpc-timeout': '200m' }));
    await client.settle();
    timers.advance(190);
    await client.settle();
    expect(client.headers(1)).toEqual([]);
    timers.advance(60);
    await client.settle();
    expect([status(client.headers(1).join()), cancelled, client.resets(1)]).toEqual([4, 1, [0]]);
  });

  test('handlers that throw end their call, and nothing else', async () => {
    const thrown: string[] = [];
    const server = new GrpcServer({ timers: new ManualTimers(), onMethodError: (error) => thrown.push(String(error)) });
    const fail = (what: string) => () => {
      throw new Error(what);
    };
    server.addService(ECHO, {
      ...ECHOES,
      up: (call) => {
        call.onRequest = fail('onRequest');
      },
      both: (call) => {
        call.onHalfClose = fail('onHalfClose');
        call.onCancelled = fail('onCancelled');
      },
    });
    const client = FrameClient.of(server).greet();
    client.send(headersFrame(1, { ':path': ECHO.up.path }), dataFrame(1, message('x')));
    client.send(
      headersFrame(3, { ':path': ECHO.both.path }, FLAG.endStream),
      headersFrame(5, { ':path': ECHO.both.path }),
    );
    client.send(numberFrame(FRAME.rstStream, 5, 8), unaryCall(7, 'x'));
    await client.settle();
    expect([1, 3].map((id) => status(client.headers(id).join()))).toEqual([13, 13]);
    expect(client.data(7)).toEqual(message('x'));
    const names = ['onRequest', 'onHalfClose', 'onCancelled', 'onCancelled'];
    expect(thrown).toEqual(names.map((what) => `Error: ${what}`));
  });

  test('trailers of the client end its side', async () => {
    const { client } = setUp();
    client.send(headersFrame(1), dataFrame(1, message('x')));
    client.send(Buffer.from([0, 0, 0, 1, FLAG.endHeaders | FLAG.endStream, 0, 0, 0, 1]));
    await client.settle();
    expect(client.data(1)).toEqual(message('x'));
  });

  test('a stream that ends while its method has paused it goes on later', async () => {
    let call: StreamCall<Buffer, Buffer> | undefined;
    const { client } = setUp(
      {},
      {
        both: (each) => {
          call = each;
          call.pause();
          ECHOES.both(call);
        },
      },
    );
    client.send(headersFrame(1, { ':path': ECHO.both.path }), dataFrame(1, message('x'), FLAG.endStream));
    await client.settle();
    expect(client.data(1)).toHaveLength(0);
    call?.resume();
    await client.settle();
    expect([client.data(1), client.headers(1).at(-1)]).toEqual([message('x'), 'grpc-status: 0']);
  });
});
