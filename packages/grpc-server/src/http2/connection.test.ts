// The server on raw frames, in memory: flow control, limits, drain, keep-alive. What RFC 9113 asks of each frame has a
// table of its own in the package's tests.
import { describe, expect, test } from 'vitest';
import { ECHO, ECHOES } from '../../test/support/echo-service.ts';
import {
  dataFrame,
  FrameClient,
  headersFrame,
  message,
  numberFrame,
  unaryCall,
} from '../../test/support/frame-client.ts';
import { FLAG, FRAME, frame, PREFACE, SETTING, settings } from '../../test/support/frames.ts';
import { ManualTimers } from '../../test/support/manual-timers.ts';
import { GrpcServer } from '../grpc/grpc-server.ts';
import type { Implementation } from '../grpc/implementation.ts';
import type { GrpcLimits } from '../grpc/limits.ts';
import type { StreamCall } from '../grpc/stream-call.ts';
import type { UnaryCall } from '../grpc/unary-call.ts';
import { ERROR } from './protocol.ts';

interface Setup {
  readonly limits?: Partial<GrpcLimits>;
  readonly methods?: Partial<Implementation<typeof ECHO>>;
}

function setUp({ limits = {}, methods = {} }: Setup = {}) {
  const timers = new ManualTimers();
  const refused: string[] = [];
  const server = new GrpcServer({ timers, limits, onRefused: (limit) => refused.push(limit) });
  server.addService(ECHO, { ...ECHOES, ...methods });
  return { timers, server, refused, client: FrameClient.of(server) };
}

const BOTH = { ':path': ECHO.both.path };
const UP = { ':path': ECHO.up.path };
const ping = (text = '12345678', flags = 0) => frame(FRAME.ping, flags, 0, Buffer.from(text));

describe('a connection', () => {
  test('answers calls that arrive octet by octet', async () => {
    const { client } = setUp();
    for (const octet of Buffer.concat([PREFACE, settings(), unaryCall(1, 'hello')])) client.send(Buffer.from([octet]));
    await client.settle();
    expect(client.headers(1)).toEqual([':status: 200\ncontent-type: application/grpc', 'grpc-status: 0']);
    expect(client.data(1)).toEqual(message('hello'));
  });

  test('answers all calls of one read in one write', async () => {
    const { client } = setUp();
    client.greet();
    await client.settle();
    let writes = 0;
    client.socket.on('data', () => writes++);
    client.send(...[1, 3, 5, 7].map((id) => unaryCall(id, `call ${id}`)));
    await client.settle();
    expect(client.data(7)).toEqual(message('call 7'));
    expect(writes).toBe(1);
  });

  test('goes on after a request that is malformed, and counts it as a stream error', async () => {
    const { client } = setUp();
    client.greet();
    client.send(headersFrame(1, { te: 'gzip' }), unaryCall(3, 'x'));
    await client.settle();
    expect(client.resets(1)).toEqual([ERROR.protocolError]);
    expect(client.data(3)).toEqual(message('x'));
  });

  test('forgets all of its streams when it ends, and tells their methods', async () => {
    let cancelled = 0;
    const wait = (call: UnaryCall<Buffer, Buffer>): void => {
      call.onCancelled = () => cancelled++;
    };
    const { client, server } = setUp({ methods: { unary: wait } });
    client
      .greet()
      .send(unaryCall(1, 'a'), unaryCall(3, 'b'), headersFrame(5), dataFrame(5, message('part').subarray(0, 7)));
    await client.settle();
    expect(server.held).toMatchObject({ connections: 1, streams: 3 });
    expect(server.held.unfinishedBytes).toBeGreaterThan(0);
    client.socket.destroy();
    await client.settle();
    expect(cancelled).toBe(2); // the third has not begun
    expect(server.held).toEqual({ connections: 0, streams: 0, unfinishedBytes: 0, outputBytes: 0 });
  });
});

describe('windows', () => {
  test('hold back an answer until the client opens them, and other streams go on', async () => {
    const { client } = setUp();
    client.greet([SETTING.initialWindowSize, 10]).send(unaryCall(1, 'x'.repeat(30)), unaryCall(3, '12345'));
    await client.settle();
    expect([client.data(1).length, client.data(3).length]).toEqual([10, 10]);
    expect(client.headers(1)).toHaveLength(1);
    client.send(numberFrame(FRAME.windowUpdate, 1, 100));
    await client.settle();
    expect(client.data(1)).toEqual(message('x'.repeat(30)));
  });

  test('become negative by a setting, and count from there', async () => {
    const { client } = setUp();
    client.greet([SETTING.initialWindowSize, 20]).send(unaryCall(1, 'x'.repeat(95)));
    await client.settle();
    client.send(settings([SETTING.initialWindowSize, 5]), numberFrame(FRAME.windowUpdate, 1, 15));
    await client.settle();
    expect(client.data(1)).toHaveLength(20);
    client.send(numberFrame(FRAME.windowUpdate, 1, 7));
    await client.settle();
    expect(client.data(1)).toHaveLength(27);
  });

  test('share the window of the connection in turns', async () => {
    const { client } = setUp();
    client.greet([SETTING.initialWindowSize, 1_000_000]);
    client.send(unaryCall(1, 'a'.repeat(4)), dataCall(3, 50_000), dataCall(5, 50_000));
    await client.settle();
    expect(client.data(3).length + client.data(5).length).toBe(65_535 - 9);
    client.send(numberFrame(FRAME.windowUpdate, 0, 8));
    await client.settle();
    expect(client.data(3).length).toBeLessThanOrEqual(50_005);
    client.send(numberFrame(FRAME.windowUpdate, 0, 1_000_000));
    await client.settle();
    expect([client.data(3).length, client.data(5).length]).toEqual([50_005, 50_005]);
  });

  test('of the connection are returned for streams that are refused, reset or not read', async () => {
    const paused = (call: StreamCall<Buffer, Buffer>): void => call.pause();
    const { client } = setUp({
      limits: { streamsPerConnectionMax: 1, connectionWindowBytes: 65_535 },
      methods: { both: paused },
    });
    client.greet().send(headersFrame(1, BOTH), headersFrame(3, BOTH));
    const bytes = Buffer.alloc(16_000);
    for (let i = 0; i < 10; i++) client.send(dataFrame(3, bytes)); // refused: more than a window altogether
    client.send(dataFrame(1, bytes));
    await client.settle();
    expect(client.resets(3)).toEqual([ERROR.refusedStream]);
    expect(client.goaway()).toBeUndefined();
    const returned = client.of(FRAME.windowUpdate, 0).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    expect(returned).toBeGreaterThan(11 * 16_000 - 65_535 / 2);
    expect(client.of(FRAME.windowUpdate, 1)).toEqual([]);
  });

  test('of a stream are returned once its method reads on', async () => {
    let call: StreamCall<Buffer, Buffer> | undefined;
    const got: string[] = [];
    const both = (each: StreamCall<Buffer, Buffer>): void => {
      call = each;
      call.onRequest = (request) => {
        got.push(String(request));
        call?.pause();
      };
      call.onHalfClose = () => call?.end();
    };
    const { client, server } = setUp({ methods: { both } });
    client.greet().send(headersFrame(1, BOTH));
    client.send(dataFrame(1, Buffer.concat([message('1'), message('2'), message('3')])));
    client.send(dataFrame(1, message('4'.repeat(40_000)).subarray(0, 16_000)), dataFrame(1, Buffer.alloc(16_000, '4')));
    client.send(dataFrame(1, Buffer.alloc(8_005, '4')), dataFrame(1, message('5'), FLAG.endStream));
    await client.settle();
    expect(got).toEqual(['1']);
    for (let i = 0; i < 4; i++) call?.resume();
    await client.settle();
    expect(got).toEqual(['1', '2', '3', '4'.repeat(40_000), '5']);
    expect(client.headers(1)).toHaveLength(0);
    call?.resume();
    await client.settle();
    expect(client.headers(1).at(-1)).toBe('grpc-status: 0');
    expect(server.held.unfinishedBytes).toBe(0);
  });

  test('of large messages are returned although a stream without one was first (W3)', async () => {
    const { client } = setUp({ limits: { unfinishedBytesPerConnectionMax: 20_000 } });
    client.greet().send(headersFrame(1, BOTH), headersFrame(3, UP));
    const whole = message(Buffer.alloc(60_000, 'x'));
    const parts = (id: number, until: number): Buffer[] => {
      const frames: Buffer[] = [];
      for (let at = 0; at < until; at += 15_000)
        frames.push(dataFrame(id, whole.subarray(at, Math.min(until, at + 15_000))));
      return frames;
    };
    client.send(...parts(3, 30_000)); // more than the bound, less than half a window
    client.send(...Array.from({ length: 3 }, () => dataFrame(1, message(Buffer.alloc(12_000))))); // idle from now on
    client.send(dataFrame(3, whole.subarray(30_000, 45_000)));
    await client.settle();
    expect(client.of(FRAME.windowUpdate, 1)).toHaveLength(1);
    expect(client.of(FRAME.windowUpdate, 3)).toHaveLength(1);
  });

  test('of large messages are returned to one stream at a time above the bound for a connection', async () => {
    const { client, server } = setUp({ limits: { unfinishedBytesPerConnectionMax: 100_000 } });
    client.greet([SETTING.initialWindowSize, 1e6]).send(numberFrame(FRAME.windowUpdate, 0, 1e6));
    const ids = [1, 3, 5, 7];
    client.send(...ids.map((id) => headersFrame(id, UP)));
    const part = Buffer.alloc(10_000, 'x');
    for (const id of ids) client.send(dataFrame(id, message(Buffer.alloc(200_000, 'x')).subarray(0, 10_000)));
    const sent = new Map(ids.map((id) => [id, 10_000]));
    const windowOf = (id: number): number =>
      65_535 + client.of(FRAME.windowUpdate, id).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    let heldMax = 0;
    for (let round = 0; round < 120; round++) {
      for (const id of ids) {
        const bytes = Math.min(part.length, 200_005 - (sent.get(id) ?? 0), windowOf(id) - (sent.get(id) ?? 0));
        if (bytes <= 0) continue;
        sent.set(id, (sent.get(id) ?? 0) + bytes);
        client.send(dataFrame(id, part.subarray(0, bytes), sent.get(id) === 200_005 ? FLAG.endStream : 0));
      }
      await client.settle();
      heldMax = Math.max(heldMax, server.held.unfinishedBytes);
    }
    expect([...sent.values()]).toEqual([200_005, 200_005, 200_005, 200_005]);
    expect(ids.map((id) => client.headers(id).at(-1))).toEqual(ids.map(() => 'grpc-status: 0'));
    expect(heldMax).toBeLessThan(100_000 + 4 * 2 * 65_535 + 200_000);
    expect(server.held.unfinishedBytes).toBe(0);
  });
});

function dataCall(id: number, bytes: number): Buffer {
  const whole = message(Buffer.alloc(bytes));
  const parts: Buffer[] = [headersFrame(id)];
  for (let at = 0; at < whole.length; at += 16_384) {
    parts.push(dataFrame(id, whole.subarray(at, at + 16_384), at + 16_384 >= whole.length ? FLAG.endStream : 0));
  }
  return Buffer.concat(parts);
}

describe('limits', () => {
  const SLOW_FRAME = frame(FRAME.continuation, 0, 1, Buffer.alloc(100)).subarray(0, 9);
  const CALM = ERROR.enhanceYourCalm;
  const times = (count: number, bytes: (index: number) => Buffer) => Array.from({ length: count }, (_, i) => bytes(i));
  const rows: readonly { limit: keyof GrpcLimits; max: number; floods: readonly Buffer[]; says?: string }[] = [
    {
      limit: 'resetsPerSecondMax',
      max: 5,
      floods: times(11, (i) =>
        Buffer.concat([headersFrame(2 * i + 1), numberFrame(FRAME.rstStream, 2 * i + 1, ERROR.cancel)]),
      ),
    },
    { limit: 'streamErrorsPerSecondMax', max: 5, floods: times(11, (i) => headersFrame(2 * i + 1, { te: 'no' })) },
    { limit: 'pingsPerSecondMax', max: 2, floods: times(5, () => ping()) },
    { limit: 'pingStrikesMax', max: 2, floods: times(4, () => ping()), says: 'too_many_pings' },
    { limit: 'settingsPerSecondMax', max: 5, floods: times(11, () => settings()) },
    { limit: 'uselessFramesPerSecondMax', max: 5, floods: times(11, () => frame(0x7b, 0, 0)) },
    {
      limit: 'uselessFramesPerSecondMax',
      max: 5,
      floods: [headersFrame(1), ...times(11, () => dataFrame(1, Buffer.alloc(0)))],
    },
    {
      limit: 'continuationFramesMax',
      max: 3,
      floods: [frame(FRAME.headers, 0, 1), ...times(4, () => frame(FRAME.continuation, 0, 1))],
    },
    {
      limit: 'headerBlockBytesMax',
      max: 100,
      floods: [frame(FRAME.headers, 0, 1), frame(FRAME.continuation, 0, 1, Buffer.alloc(101))],
    },
    {
      limit: 'tinyFramesPerSecondMax',
      max: 3,
      floods: [
        settings([SETTING.initialWindowSize, 0]),
        unaryCall(1, 'x'.repeat(100)),
        ...times(8, () => numberFrame(FRAME.windowUpdate, 1, 1)),
      ],
    },
  ];
  test.each(rows)('$limit ends the connection with ENHANCE_YOUR_CALM', async ({ limit, max, floods, says }) => {
    const { client, refused } = setUp({ limits: { [limit]: max } });
    client.greet().send(...floods);
    await client.settle();
    expect(client.goaway()).toEqual([CALM, says ?? limit]);
    expect(refused).toEqual([limit]);
    expect(client.isClosed).toBe(true);
  });

  test('a rate starts again at zero after a second', async () => {
    const { client, timers } = setUp({ limits: { settingsPerSecondMax: 3 } });
    client.greet();
    for (let second = 0; second < 5; second++) {
      client.send(settings(), settings());
      await client.settle();
      timers.advance(1_001);
    }
    expect(client.goaway()).toBeUndefined();
  });

  test('a stream too many is refused, alone or of all connections', async () => {
    for (const limit of ['streamsPerConnectionMax', 'streamsMax'] as const) {
      const { client, refused } = setUp({ limits: { [limit]: 2 } });
      client.greet().send(headersFrame(1), headersFrame(3), headersFrame(5), unaryCall(7, 'x'));
      await client.settle();
      expect([client.resets(5), client.resets(7), refused]).toEqual([[7], [7], [limit, limit]]);
      client.send(dataFrame(1, message('1'), FLAG.endStream));
      await client.settle();
      client.send(unaryCall(9, 'x'));
      await client.settle();
      expect(client.data(9)).toEqual(message('x'));
    }
  });

  test('a connection too many is closed', async () => {
    const { server, refused, client } = setUp({ limits: { connectionsMax: 1 } });
    const second = await FrameClient.of(server).settle();
    expect([client.isClosed, second.isClosed, refused]).toEqual([false, true, ['connectionsMax']]);
  });

  test('the connection with most of unfinished input is closed when all have too much', async () => {
    const { server, client, refused } = setUp({ limits: { unfinishedBytesMax: 50_000 } });
    const other = FrameClient.of(server);
    for (const [each, bytes] of [
      [client, 14_000],
      [other, 10_000],
    ] as const) {
      each.greet();
      for (const id of [1, 3])
        each.send(headersFrame(id, UP), dataFrame(id, message(Buffer.alloc(50_000)).subarray(0, bytes)));
      await each.settle();
    }
    other.send(unaryCall(9, 'x'));
    await other.settle();
    expect([client.isClosed, other.isClosed, refused]).toEqual([true, false, ['unfinishedBytesMax']]);
    expect(other.data(9)).toEqual(message('x'));
  });

  test('a client that does not read its answers is closed', async () => {
    const { client, refused, server } = setUp({ limits: { outputBytesPerConnectionMax: 100_000 } });
    client.greet([SETTING.initialWindowSize, 0]).send(dataCall(1, 60_000), unaryCall(3, 'x'), dataCall(5, 60_000));
    await client.settle();
    expect([client.isClosed, refused, server.held.outputBytes]).toEqual([true, ['outputBytesPerConnectionMax'], 0]);
  });

  test.each([
    { limit: 'prefaceMs', ms: 5_000, sends: [PREFACE] },
    { limit: 'keepAliveTimeoutMs', ms: 50_000, sends: [PREFACE, settings(), frame(FRAME.settings, FLAG.ack, 0)] },
    { limit: 'settingsAckMs', ms: 10_000, sends: [PREFACE, settings()] },
    {
      limit: 'messageMs',
      ms: 60_000,
      sends: [PREFACE, settings(), frame(FRAME.settings, 1, 0), frame(FRAME.headers, 0, 1), SLOW_FRAME],
    },
  ] as const)('$limit closes the connection', async ({ limit, ms, sends }) => {
    const { client, timers, refused } = setUp();
    client.send(...sends);
    await client.settle();
    for (let second = 0; second < ms / 1_000; second++) {
      timers.advance(1_000);
      if (limit === 'messageMs') client.send(Buffer.alloc(1)); // a frame octet by octet
      await client.settle();
    }
    expect([client.isClosed, refused]).toEqual([false, []]);
    timers.advance(3_000);
    await client.settle();
    expect([client.isClosed, refused]).toEqual([true, [limit]]);
  });

  test('a request that does not arrive in time is refused, a quiet stream is not', async () => {
    const { client, timers, refused } = setUp({ limits: { keepAliveMs: 1e9 } });
    client.greet().send(headersFrame(1), headersFrame(3, BOTH), headersFrame(5, BOTH), dataFrame(5, Buffer.alloc(3)));
    await client.settle();
    timers.advance(63_000);
    await client.settle();
    expect(client.headers(1)[0]).toContain('grpc-status: 4');
    expect([client.resets(1), client.resets(3), client.resets(5)]).toEqual([[0], [], [0]]);
    expect(refused).toEqual(['messageMs', 'messageMs']);
  });

  test('an answer that its client does not take is dropped', async () => {
    const { client, timers, server } = setUp({ limits: { keepAliveMs: 1e9 } });
    client.greet([SETTING.initialWindowSize, 3]).send(unaryCall(1, 'abcdef'));
    await client.settle();
    timers.advance(63_000);
    await client.settle();
    expect([client.resets(1), server.held.streams, server.held.outputBytes]).toEqual([[ERROR.cancel], 0, 0]);
  });
});

describe('keep-alive', () => {
  test('a silent connection is sent a PING, and stays if it answers', async () => {
    const { client, timers } = setUp();
    client.greet();
    await client.settle();
    for (let round = 1; round < 5; round++) {
      timers.advance(31_000);
      await client.settle();
      expect(client.of(FRAME.ping)).toHaveLength(round);
      client.send(ping('is there', FLAG.ack));
      await client.settle();
    }
    expect(client.isClosed).toBe(false);
  });

  test('pings are answered; those between answers of calls are forgiven', async () => {
    const { client } = setUp();
    client.greet();
    for (let i = 0; i < 10; i++) client.send(unaryCall(2 * i + 1, 'x'), ping());
    await client.settle();
    expect(client.of(FRAME.ping)).toHaveLength(10);
    client.send(ping(), ping(), ping());
    await client.settle();
    expect(client.goaway()).toEqual([ERROR.enhanceYourCalm, 'too_many_pings']);
  });

  test('a client may ping every five seconds', async () => {
    const { client, timers } = setUp();
    client.greet();
    for (let i = 0; i < 10; i++) {
      client.send(ping());
      await client.settle();
      timers.advance(5_000);
    }
    expect(client.goaway()).toBeUndefined();
  });
});

describe('a drain', () => {
  test('announces itself, serves what was under way, refuses the rest and hangs up', async () => {
    const calls: UnaryCall<Buffer, Buffer>[] = [];
    const { client, server } = setUp({ methods: { unary: (call) => void calls.push(call) } });
    client.greet().send(unaryCall(1, 'a'));
    await client.settle();
    let isDone = false;
    void server.drain().then(() => {
      isDone = true;
    });
    client.send(unaryCall(3, 'b')); // crossed the announcement
    await client.settle();
    expect(client.of(FRAME.goaway).map(({ payload }) => payload.readUInt32BE(0))).toEqual([2 ** 31 - 1]);
    client.send(
      frame(FRAME.ping, FLAG.ack, 0, client.of(FRAME.ping)[0]?.payload ?? Buffer.alloc(8)),
      unaryCall(5, 'c'),
    );
    await client.settle();
    expect(client.of(FRAME.goaway).map(({ payload }) => payload.readUInt32BE(0))).toEqual([2 ** 31 - 1, 3]);
    expect([calls.length, client.resets(5), isDone]).toEqual([2, [ERROR.refusedStream], false]);
    for (const call of calls) call.respond(Buffer.from(call.request));
    await client.settle();
    expect([client.data(3), client.isClosed, isDone]).toEqual([message('b'), true, true]);
  });

  test('gives the client a whole second to answer, whenever it begins (C3)', async () => {
    const { client, server, timers } = setUp();
    client.greet();
    await client.settle();
    timers.advance(999);
    void server.drain();
    timers.advance(900);
    await client.settle();
    expect(client.of(FRAME.goaway)).toHaveLength(1);
    client.send(unaryCall(1, 'crossed the announcement'));
    await client.settle();
    expect(client.data(1)).toEqual(message('crossed the announcement'));
  });

  test('never raises the last stream id that it has announced (RFC 9113, 6.8)', async () => {
    const { client, server } = setUp({ methods: { unary: () => {} } });
    client.greet().send(unaryCall(1, 'a'));
    await client.settle();
    void server.drain();
    await client.settle();
    client.send(frame(FRAME.ping, FLAG.ack, 0, client.of(FRAME.ping)[0]?.payload ?? Buffer.alloc(8)));
    client.send(unaryCall(3, 'refused'));
    await client.settle();
    server.close();
    await client.settle();
    expect(client.of(FRAME.goaway).map(({ payload }) => payload.readUInt32BE(0))).toEqual([2 ** 31 - 1, 1, 1]);
  });

  test('goes on a second or two later if the client does not answer', async () => {
    const { client, server, timers } = setUp();
    client.greet();
    await client.settle();
    const done = server.drain();
    timers.advance(2_000);
    await done;
    await client.settle();
    expect(client.isClosed).toBe(true);
    expect((await FrameClient.of(server).settle()).isClosed).toBe(true);
  });
});
