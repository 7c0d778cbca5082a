// The contract of a gRPC server, octet by octet: gRPC over HTTP/2 (PROTOCOL-HTTP2.md), on a raw socket.
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import { CODE, type ContractServer, MESSAGE_BYTES_MAX, type Reflection } from '../support/contract-service.ts';
import {
  ERROR,
  FLAG,
  FRAME,
  type Frame,
  frame,
  PREFACE,
  rstStream,
  SETTING,
  SETTINGS_ACK,
  settings,
  windowUpdate,
} from '../support/frames.ts';
import { data, message, openCall, type RawAnswer, RawClient, unaryCall } from '../support/raw-client.ts';

const ECHO = '/test.Contract/Echo';
const UNARY = '/test.Contract/Unary';
const COLLECT = '/test.Contract/Collect';
const PRODUCE = '/test.Contract/Produce';
const CHAT = '/test.Contract/Chat';

/** The status of an answer, from its last header list. */
function statusOf({ lists }: RawAnswer): number {
  return Number(lists.at(-1)?.['grpc-status'] ?? Number.NaN);
}

describe.each(SERVERS)('octets from $name', ({ name: serverName, start }) => {
  /** The reference is laxer, or says less, than the specifications of gRPC. */
  const isStrict = serverName !== 'grpc-js';
  let server: ContractServer;
  let client: RawClient;

  beforeEach(async () => {
    server = await start();
    client = await RawClient.connect(server.port);
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  describe('an answer', () => {
    test('is a head, the message and trailers', async () => {
      client.send(unaryCall(1, ECHO, 'hello'));
      const answer = await client.answer(1);
      expect(answer.lists).toHaveLength(2);
      expect(answer.lists[0]).toMatchObject({ ':status': '200' });
      expect(answer.lists[0]?.['content-type']).toMatch(/^application\/grpc/);
      expect(answer.lists[0]).not.toHaveProperty('grpc-status');
      expect(answer.lists[1]).toMatchObject({ 'grpc-status': '0' });
      expect(answer.lists[1]).not.toHaveProperty(':status');
      expect(answer.data).toEqual(message('hello'));
    });

    test('without a message is trailers only', async () => {
      client.send(unaryCall(1, UNARY, JSON.stringify({ fail: { code: CODE.notFound, message: 'no such key' } })));
      const { lists, data: body } = await client.answer(1);
      expect(lists).toHaveLength(1);
      expect(lists[0]).toMatchObject({ ':status': '200', 'grpc-status': '5' });
      expect(decodeURIComponent(lists[0]?.['grpc-message'] ?? '')).toBe('no such key');
      expect(body).toHaveLength(0);
    });

    test.each([
      { text: 'Grüße 100%', encoded: 'Gr%C3%BC%C3%9Fe 100%25' },
      { text: 'two\nlines', encoded: 'two%0Alines' },
    ])('carries the message $encoded percent-encoded', async ({ text, encoded }) => {
      client.send(unaryCall(1, UNARY, JSON.stringify({ fail: { code: CODE.aborted, message: text } })));
      const { lists } = await client.answer(1);
      const sent = lists[0]?.['grpc-message'] ?? '';
      expect(decodeURIComponent(sent)).toBe(text);
      expect(sent).toMatch(/^[\x20-\x7e]*$/);
      // grpc-js encodes more octets than it must.
      if (isStrict) expect(sent).toBe(encoded);
    });
  });

  describe('a request', () => {
    test('may come octet by octet', async () => {
      const bytes = unaryCall(1, ECHO, 'slowly');
      for (const octet of bytes) {
        client.send(Buffer.from([octet]));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect((await client.answer(1)).data).toEqual(message('slowly'));
    });

    test('may come in DATA frames of one octet, padded, with empty ones between', async () => {
      const parts = [...message('in parts')].map((octet) => data(1, Buffer.from([4, octet, 0, 0, 0, 0]), FLAG.padded));
      client.send(openCall(1, ECHO), data(1, Buffer.alloc(0)), ...parts, data(1, Buffer.alloc(0), FLAG.endStream));
      expect((await client.answer(1)).data).toEqual(message('in parts'));
    });

    test('may end with trailers', async () => {
      client.send(openCall(1, ECHO), data(1, message('x')));
      client.send(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, Buffer.from('0001610162', 'hex')));
      expect(statusOf(await client.answer(1))).toBe(CODE.ok);
    });

    test('of several messages in one frame reaches a stream as several', async () => {
      client.send(openCall(1, COLLECT), data(1, Buffer.concat(['a', 'bb', '', 'ccc'].map((text) => message(text)))));
      client.send(data(1, Buffer.alloc(0), FLAG.endStream));
      expect((await client.answer(1)).data.subarray(5).toString()).toBe(JSON.stringify({ count: 4, bytes: 6 }));
    });

    test.each([
      { name: 'no message', body: Buffer.alloc(0) },
      { name: 'a part of a prefix', body: message('x').subarray(0, 3) },
      { name: 'a part of a message', body: message('cut').subarray(0, 6) },
      ...(isStrict
        ? [
            {
              name: 'a message and a part of another',
              body: Buffer.concat([message('one'), message('x').subarray(0, 3)]),
            },
          ]
        : []),
      { name: 'two messages', body: Buffer.concat([message('one'), message('two')]) },
    ])('of a unary call with $name fails', async ({ body }) => {
      client.send(openCall(1, ECHO), data(1, body, FLAG.endStream));
      const answer = await client.answer(1);
      // A stream that is reset has no status; clients make one of the code.
      expect(answer.reset === undefined ? statusOf(answer) : CODE.internal).not.toBe(CODE.ok);
      client.send(unaryCall(3, ECHO, 'next'));
      expect(statusOf(await client.answer(3))).toBe(CODE.ok);
    });

    test.each(['application/grpc', 'application/grpc+proto', 'application/grpc;charset=utf-8'])(
      'of content-type %s is accepted',
      async (type) => {
        client.send(unaryCall(1, ECHO, 'x', [['content-type', type]]));
        expect(statusOf(await client.answer(1))).toBe(CODE.ok);
      },
    );

    test.each(['text/html', 'application/json', ...(isStrict ? ['application/grpcish'] : []), ''])(
      'of content-type %j is answered by HTTP 415',
      async (type) => {
        client.send(unaryCall(1, ECHO, 'x', [['content-type', type]]));
        expect((await client.answer(1)).lists[0]?.[':status']).toBe('415');
      },
    );

    test.each(['1H', '60M', '60S', '60000m', '99999999u', '99999999n'])(
      'with grpc-timeout %s has time',
      async (timeout) => {
        client.send(unaryCall(1, ECHO, 'x', [['grpc-timeout', timeout]]));
        expect(statusOf(await client.answer(1))).toBe(CODE.ok);
      },
    );

    test('with a grpc-timeout that is over is cancelled', async () => {
      client.send(unaryCall(1, UNARY, JSON.stringify({ wait: true }), [['grpc-timeout', '1000u']]));
      const answer = await client.answer(1);
      expect(answer.reset === undefined ? statusOf(answer) : CODE.deadlineExceeded).toBe(CODE.deadlineExceeded);
      await expect.poll(() => server.observed.cancelled).toBe(1);
    });

    test('carries binary metadata in base64 with padding or without, and several with commas', async () => {
      const metadata = [
        ['x-one-bin', 'AAEC'],
        ['x-padded-bin', 'AA=='],
        ['x-bare-bin', 'AA'],
        ['x-two-bin', 'AAE,AgM='],
      ] as const;
      client.send(unaryCall(1, UNARY, JSON.stringify({ reflect: true }), metadata));
      const { data: body } = await client.answer(1);
      const got = (JSON.parse(body.subarray(5).toString()) as Reflection).metadata;
      expect(got).toContainEqual(['x-one-bin', 'AAEC']);
      expect(got).toContainEqual(['x-padded-bin', 'AA==']);
      expect(got).toContainEqual(['x-bare-bin', 'AA==']);
      const two = got.filter(([name]) => name === 'x-two-bin').map(([, value]) => Buffer.from(value, 'base64'));
      expect(Buffer.concat(two)).toEqual(Buffer.from([0, 1, 2, 3]));
    });
  });

  describe('compression', () => {
    const gzip = ['grpc-encoding', 'gzip'] as const;

    test('by gzip is undone, message by message', async () => {
      client.send(openCall(1, COLLECT, [gzip]));
      client.send(data(1, message(gzipSync('compressed'), 1)), data(1, message('plain'), FLAG.endStream));
      expect((await client.answer(1)).data.subarray(5).toString()).toBe(JSON.stringify({ count: 2, bytes: 15 }));
    });

    test.each([
      { name: 'a method that is not known', encoding: 'snappy', body: message('x', 1), code: CODE.unimplemented },
      { name: 'no method that was named', encoding: 'identity', body: message('x', 1), code: CODE.internal },
      { name: 'gzip that is none', encoding: 'gzip', body: message('not gzip', 1), code: CODE.internal },
      {
        name: 'gzip that is cut',
        encoding: 'gzip',
        body: message(gzipSync('cut').subarray(0, -9), 1),
        code: CODE.internal,
      },
    ])('by $name is refused', async ({ encoding, body, code }) => {
      client.send(openCall(1, ECHO, [['grpc-encoding', encoding]]), data(1, body, FLAG.endStream));
      const answer = await client.answer(1);
      if (isStrict) expect(answer.reset ?? statusOf(answer)).toBe(code);
      if (isStrict && code === CODE.unimplemented)
        expect(answer.lists.at(-1)?.['grpc-accept-encoding']).toMatch(/gzip/);
      client.send(unaryCall(3, ECHO, 'next'));
      expect(statusOf(await client.answer(3))).toBe(CODE.ok);
    });

    test('that inflates a thousandfold is stopped at the largest message', async () => {
      const bomb = gzipSync(Buffer.alloc(MESSAGE_BYTES_MAX * 8), { level: 9 });
      client.send(openCall(1, ECHO, [gzip]));
      for (let at = 0; at < bomb.length + 5; at += 16_000) {
        const part = message(bomb, 1).subarray(at, at + 16_000);
        client.send(data(1, part, at + 16_000 >= bomb.length + 5 ? FLAG.endStream : 0));
      }
      expect(statusOf(await client.answer(1))).toBe(CODE.resourceExhausted);
    });
  });

  describe('an early end', () => {
    test.each([
      { name: 'a failure', path: CHAT, text: 'fail', code: CODE.aborted },
      { name: 'an answer', path: COLLECT, text: 'stop', code: CODE.ok },
    ])('by $name asks the client to stop with RST_STREAM(NO_ERROR)', async ({ path, text, code }) => {
      client.send(openCall(1, path), data(1, message(text)));
      if (isStrict) await client.until(({ type, stream }) => type === FRAME.rstStream && stream === 1);
      const answer = await client.answer(1);
      expect(statusOf(answer)).toBe(code);
      if (isStrict) expect(answer.reset).toBe(ERROR.noError);
    });

    test('gives back the window for what the client has sent meanwhile', async () => {
      const streams = Array.from({ length: 200 }, (_, index) => 2 * index + 1);
      const window = new Window(client, 0);
      const part = Buffer.alloc(15_000);
      for (const stream of streams) {
        client.send(openCall(stream, CHAT));
        for (const bytes of [message('fail'), part, part, part, part]) {
          await window.take(bytes.length);
          client.send(data(stream, bytes));
        }
      }
      const last = streams.length * 2 + 1;
      client.send(unaryCall(last, ECHO, 'next'));
      expect(statusOf(await client.answer(last))).toBe(CODE.ok);
    });
  });

  test('padding is given back to the windows as well', async () => {
    const windows = [new Window(client, 0), new Window(client, 1)];
    client.send(openCall(1, COLLECT));
    const padded = Buffer.concat([Buffer.from([255]), message('x'), Buffer.alloc(255)]);
    const parts = Buffer.concat(new Array(100).fill(data(1, padded, FLAG.padded)));
    // More than the window of the connection, which is 4 MiB.
    const count = 17_000;
    for (let sent = 0; sent < count; sent += 100) {
      for (const window of windows) await window.take(100 * padded.length);
      client.send(parts);
    }
    client.send(data(1, Buffer.alloc(0), FLAG.endStream));
    expect((await client.answer(1)).data.subarray(5).toString()).toBe(JSON.stringify({ count, bytes: count }));
  });

  test('a reset of the client cancels an open stream', async () => {
    client.send(openCall(1, COLLECT), data(1, message('one')));
    await expect.poll(() => server.observed.received).toBe(1);
    client.send(rstStream(1, ERROR.cancel));
    await expect.poll(() => server.observed.cancelled).toBe(1);
  });

  describe('the windows of the client', () => {
    const produce = (production: object): Buffer => unaryCall(1, PRODUCE, JSON.stringify(production));

    test('are not exceeded, and answers go on with every update', async () => {
      client.close();
      const greeting = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 1_000]), SETTINGS_ACK]);
      client = await RawClient.connect(server.port, { greeting });
      client.send(produce({ count: 3, bytes: 2_000 }));
      let received = 0;
      while (received < 3 * 2_005) {
        const soFar = received;
        await client.until(() => dataBytes(client, 1) >= Math.min(soFar + 1_000, 3 * 2_005));
        received = dataBytes(client, 1);
        expect(received).toBeLessThanOrEqual(soFar + 1_000);
        client.send(windowUpdate(1, received - soFar));
      }
      expect(statusOf(await client.answer(1))).toBe(CODE.ok);
    });

    test('of 0 octets hold back messages, neither heads nor trailers', async () => {
      client.close();
      const greeting = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 0]), SETTINGS_ACK]);
      client = await RawClient.connect(server.port, { greeting });
      client.send(unaryCall(1, ECHO, 'waits'), unaryCall(3, UNARY, JSON.stringify({ fail: { code: 5, message: '' } })));
      expect(statusOf(await client.answer(3))).toBe(CODE.notFound);
      await client.until(({ type, stream }) => type === FRAME.headers && stream === 1);
      expect(dataBytes(client, 1)).toBe(0);
      const seen = client.frames.length;
      client.send(settings([SETTING.initialWindowSize, 7]));
      await client.until(() => dataBytes(client, 1) === 7);
      // Clients count on a setting once it is acknowledged: grpc-core refuses what comes before (RFC 9113 §6.5.3).
      const order = client.frames.slice(seen).map(({ type }) => type);
      expect(order).toEqual([FRAME.settings, FRAME.data]);
      client.send(windowUpdate(1, 100));
      expect((await client.answer(1)).data).toEqual(message('waits'));
    });

    test('of the connection hold back all streams, which then go on', async () => {
      client.close();
      const greeting = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 1_000_000]), SETTINGS_ACK]);
      client = await RawClient.connect(server.port, { greeting });
      client.send(
        produce({ count: 10, bytes: 20_000 }),
        unaryCall(3, PRODUCE, JSON.stringify({ count: 10, bytes: 20_000 })),
      );
      await client.until(() => dataBytes(client, 1) + dataBytes(client, 3) === 65_535);
      await client.settled('blocked');
      expect(dataBytes(client, 1) + dataBytes(client, 3)).toBe(65_535);
      client.send(windowUpdate(0, 1_000_000));
      expect(statusOf(await client.answer(1))).toBe(CODE.ok);
      expect(statusOf(await client.answer(3))).toBe(CODE.ok);
    });

    test('frames are not larger than the client allows', async () => {
      client.close();
      const greeting = Buffer.concat([
        PREFACE,
        settings([SETTING.initialWindowSize, 10_000_000], [SETTING.maxFrameSize, 20_000]),
        SETTINGS_ACK,
        windowUpdate(0, 10_000_000),
      ]);
      client = await RawClient.connect(server.port, { greeting });
      client.send(produce({ count: 1, bytes: 100_000 }));
      await client.answer(1);
      expect(Math.max(...client.frames.map(({ payload }) => payload.length))).toBeLessThanOrEqual(20_000);
      expect(dataBytes(client, 1)).toBe(100_005);
    });
  });

  test('a client without a table of fields gets answers all the same', async () => {
    client.close();
    const greeting = Buffer.concat([PREFACE, settings([SETTING.headerTableSize, 0]), SETTINGS_ACK]);
    client = await RawClient.connect(server.port, { greeting });
    client.send(unaryCall(1, ECHO, 'x'), unaryCall(3, ECHO, 'y'));
    expect(statusOf(await client.answer(1))).toBe(CODE.ok);
    expect(statusOf(await client.answer(3))).toBe(CODE.ok);
    // The first block acknowledges the smaller table, once (RFC 7541 §4.2).
    const [first, ...others] = client.frames
      .filter(({ type }) => type === FRAME.headers)
      .map(({ payload }) => payload[0]);
    expect(first).toBe(0x20);
    expect(others).not.toContain(0x20);
  });

  test('bytes in metadata are sent without padding', async () => {
    client.send(unaryCall(1, UNARY, JSON.stringify({ trailers: [['x-bytes-bin', 'AA==']] })));
    const sent = (await client.answer(1)).lists.at(-1)?.['x-bytes-bin'];
    expect(sent).toBe(isStrict ? 'AA' : 'AA==');
  });
});

/** What a client may still send, on a stream or, with id 0, on its connection. */
class Window {
  readonly #client: RawClient;
  readonly #stream: number;
  #bytes = 65_535;
  /** Frames of the server that have been looked at. */
  #seen = 0;

  constructor(client: RawClient, stream: number) {
    this.#client = client;
    this.#stream = stream;
  }

  /** Waits until so many bytes may be sent, and counts them. */
  async take(bytes: number): Promise<void> {
    while (this.#bytes < bytes) {
      const { frames } = this.#client;
      const { payload } = await this.#client.until(
        (each) => frames.indexOf(each, this.#seen) >= 0 && this.#isUpdate(each),
      );
      this.#bytes += payload.readUInt32BE(0);
      this.#seen = frames.findIndex((each) => each.payload === payload) + 1;
    }
    this.#bytes -= bytes;
  }

  #isUpdate({ type, stream }: Frame): boolean {
    return type === FRAME.windowUpdate && stream === this.#stream;
  }
}

function dataBytes({ frames }: RawClient, stream: number): number {
  const own = frames.filter((each) => each.type === FRAME.data && each.stream === stream);
  return own.reduce((sum, { payload }) => sum + payload.length, 0);
}
