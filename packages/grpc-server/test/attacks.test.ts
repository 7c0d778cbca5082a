// Clients that mean harm. Each is answered as the limits say, what the server holds stays small, and another client
// is served before, during and after.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeFields, type GrpcLimits } from '../src/index.ts';
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
  uint32,
  windowUpdate,
} from './support/frames.ts';
import { type OwnServer, startOwnServer } from './support/own-server.ts';
import { data, fieldsOf, message, openCall, RawClient, unaryCall } from './support/raw-client.ts';

const ECHO = '/test.Contract/Echo';
const UNARY = '/test.Contract/Unary';
const CHAT = '/test.Contract/Chat';
const PRODUCE = '/test.Contract/Produce';
const WHOLE = (id: number): Buffer => data(id, message('{}'), 0);
const BEGUN = (id: number): Buffer => data(id, message(Buffer.alloc(100)).subarray(0, 50), 0);
const WAIT = JSON.stringify({ wait: true });

let server: OwnServer;
let bystander: RawClient;
let calls = 0;

async function start(limits: Partial<GrpcLimits> = {}): Promise<void> {
  await server?.stop();
  bystander?.close();
  server = await startOwnServer(limits);
  bystander = await RawClient.connect(server.port);
  calls = 0;
  await serveBystander();
}

/** The other client makes a call and gets its answer. */
async function serveBystander(): Promise<void> {
  const id = 2 * calls++ + 1;
  bystander.send(unaryCall(id, ECHO, `call ${id}`));
  expect((await bystander.answer(id)).data).toEqual(message(`call ${id}`));
}

/** Sends parts until all are sent or the server has ended the connection; serves the bystander in between. */
async function flood(attacker: RawClient, parts: Iterable<Buffer>): Promise<void> {
  let count = 0;
  for (const part of parts) {
    if (attacker.isClosed) break;
    attacker.send(part);
    if (++count % 200 === 0) await serveBystander();
  }
  await serveBystander();
}

function* repeated(count: number, part: (index: number) => Buffer): Generator<Buffer> {
  for (let index = 0; index < count; index++) yield part(index);
}

/** The bystander's connection alone. */
const ONE_IDLE = { connections: 1, streams: 0, unfinishedBytes: 0, outputBytes: 0 };

/** Expects the connection to end with this error, and its streams and bytes to be gone. */
async function expectEnd(attacker: RawClient, code: number, limit: keyof GrpcLimits): Promise<void> {
  await attacker.closed();
  const goaway = attacker.frames.find(({ type }) => type === FRAME.goaway);
  expect(goaway?.payload.readUInt32BE(4)).toBe(code);
  expect(new Set(server.refused)).toEqual(new Set([limit]));
  await serveBystander();
  await expect.poll(() => server.server.held).toEqual(ONE_IDLE);
}

beforeEach(async () => {
  await start();
});
afterEach(async () => {
  bystander.close();
  await server.stop();
});

describe('floods of frames end with ENHANCE_YOUR_CALM', () => {
  const HEADERS = encodeFields(fieldsOf(UNARY));
  const open = (id: number, flags: number): Buffer => frame(FRAME.headers, FLAG.endHeaders | flags, id, HEADERS);
  const odd = (index: number): number => 2 * index + 1;

  interface Flood {
    readonly name: string;
    readonly limit: keyof GrpcLimits;
    readonly first?: Buffer;
    readonly part: (index: number) => Buffer;
  }

  test.each<Flood>([
    {
      name: 'rapid reset: calls that are reset at once (CVE-2023-44487)',
      limit: 'resetsPerSecondMax',
      part: (index) => Buffer.concat([open(odd(index), 0), rstStream(odd(index), ERROR.cancel)]),
    },
    {
      name: 'calls that make the server reset them by a WINDOW_UPDATE of 0 (CVE-2025-8671)',
      limit: 'streamErrorsPerSecondMax',
      part: (index) => Buffer.concat([openCall(odd(index), CHAT), windowUpdate(odd(index), 0)]),
    },
    {
      name: 'calls that make the server reset them by a window that is too large',
      limit: 'streamErrorsPerSecondMax',
      part: (index) => Buffer.concat([openCall(odd(index), CHAT), windowUpdate(odd(index), 2 ** 31 - 1)]),
    },
    {
      name: 'calls that make the server reset them by DATA behind their end',
      limit: 'streamErrorsPerSecondMax',
      part: (index) => Buffer.concat([unaryCall(odd(index), UNARY, WAIT), data(odd(index), Buffer.alloc(1))]),
    },
    {
      name: 'malformed requests',
      limit: 'streamErrorsPerSecondMax',
      part: (index) => openCall(odd(index), ECHO, [['connection', 'close']]),
    },
    {
      name: 'CONTINUATION frames without octets (CVE-2024-27316)',
      limit: 'continuationFramesMax',
      first: frame(FRAME.headers, FLAG.endStream, 1, HEADERS),
      part: () => frame(FRAME.continuation, 0, 1),
    },
    {
      name: 'CONTINUATION frames with all octets they may have',
      limit: 'headerBlockBytesMax',
      first: frame(FRAME.headers, FLAG.endStream, 1, HEADERS),
      part: () => frame(FRAME.continuation, 0, 1, Buffer.alloc(16_384, 0x82)),
    },
    { name: 'SETTINGS', limit: 'settingsPerSecondMax', part: () => settings([SETTING.maxConcurrentStreams, 1]) },
    { name: 'PING', limit: 'pingStrikesMax', part: () => frame(FRAME.ping, 0, 0, Buffer.alloc(8)) },
    {
      name: 'answers to no PING',
      limit: 'uselessFramesPerSecondMax',
      part: () => frame(FRAME.ping, FLAG.ack, 0, Buffer.alloc(8)),
    },
    { name: 'acknowledgements of no settings', limit: 'uselessFramesPerSecondMax', part: () => SETTINGS_ACK },
    {
      name: 'PRIORITY',
      limit: 'uselessFramesPerSecondMax',
      part: (index) => frame(FRAME.priority, 0, odd(index), Buffer.alloc(5)),
    },
    {
      name: 'frames of unknown types',
      limit: 'uselessFramesPerSecondMax',
      part: () => frame(0xbe, 0, 0, Buffer.alloc(100)),
    },
    { name: 'GOAWAY', limit: 'uselessFramesPerSecondMax', part: () => frame(FRAME.goaway, 0, 0, Buffer.alloc(8)) },
    {
      name: 'DATA without octets',
      limit: 'uselessFramesPerSecondMax',
      first: openCall(1, CHAT),
      part: () => data(1, Buffer.alloc(0)),
    },
    {
      name: 'DATA of padding only',
      limit: 'uselessFramesPerSecondMax',
      first: openCall(1, CHAT),
      part: () => data(1, Buffer.from([1, 0]), FLAG.padded),
    },
  ])('$name', async ({ limit, first, part }) => {
    const attacker = await RawClient.connect(server.port);
    if (first !== undefined) attacker.send(first);
    await flood(attacker, repeated(20_000, part));
    await expectEnd(attacker, ERROR.enhanceYourCalm, limit);
  });

  test('windows that are opened octet by octet', async () => {
    await start({ tinyFramesPerSecondMax: 100 });
    const greeting = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 1]), SETTINGS_ACK]);
    const attacker = await RawClient.connect(server.port, { greeting });
    attacker.send(unaryCall(1, PRODUCE, JSON.stringify({ count: 10, bytes: 100_000 })));
    await attacker.until(({ type, stream }) => type === FRAME.data && stream === 1);
    await flood(
      attacker,
      repeated(20_000, () => windowUpdate(1, 1)),
    );
    await expectEnd(attacker, ERROR.enhanceYourCalm, 'tinyFramesPerSecondMax');
  });
});

test('a connection that fails in the chunk that completes a frame leaves no count behind', async () => {
  for (let count = 0; count < 20; count++) {
    const attacker = await RawClient.connect(server.port);
    const bytes = openCall(1, ECHO);
    attacker.send(bytes.subarray(0, 30));
    await expect.poll(() => server.server.held.unfinishedBytes).toBe(30);
    attacker.send(bytes.subarray(30), windowUpdate(0, 0));
    await attacker.closed();
    await expect.poll(() => server.server.held.connections).toBe(1);
    expect(server.server.held.unfinishedBytes).toBe(0);
  }
});

describe('header blocks', () => {
  /** A value that fills the table, then a block of nothing but references to it. */
  const ENTRY = Buffer.concat([Buffer.from('4001617f811e', 'hex'), Buffer.alloc(3_968, 'v')]);

  test('that refer to one large entry thousands of times are refused, call by call', async () => {
    const attacker = await RawClient.connect(server.port);
    const base = encodeFields(fieldsOf(ECHO));
    attacker.send(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, Buffer.concat([base, ENTRY])));
    const bomb = Buffer.concat([base, Buffer.alloc(16_000, 0xbe)]);
    const before = process.memoryUsage();
    await flood(
      attacker,
      repeated(500, (index) => frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 3, bomb)),
    );
    const { lists } = await attacker.answer(1_001);
    expect(lists[0]).toMatchObject({ ':status': '200', 'grpc-status': '8' });
    const after = process.memoryUsage();
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(100 << 20);
    expect(new Set(server.refused)).toEqual(new Set(['headerListBytesMax']));
    // The table goes on as before, for good calls as well.
    attacker.send(unaryCall(1_003, ECHO, 'good'));
    expect((await attacker.answer(1_003)).data).toEqual(message('good'));
    attacker.close();
  });

  test('in several frames count until they are whole', async () => {
    const client = await RawClient.connect(server.port);
    const block = encodeFields(fieldsOf(UNARY));
    client.send(frame(FRAME.headers, 0, 1, block.subarray(0, 20)));
    await expect.poll(() => server.server.held.unfinishedBytes).toBe(20);
    client.send(frame(FRAME.continuation, FLAG.endHeaders, 1, block.subarray(20)));
    await expect.poll(() => server.server.held).toMatchObject({ streams: 1, unfinishedBytes: 0 });
    client.close();
  });

  test('of as many small fields as fit are refused', async () => {
    const attacker = await RawClient.connect(server.port);
    const many = Buffer.concat([encodeFields(fieldsOf(ECHO)), Buffer.alloc(4_000, Buffer.from('00016100', 'hex'))]);
    attacker.send(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, many));
    expect((await attacker.answer(1)).lists[0]).toMatchObject({ 'grpc-status': '8' });
    attacker.close();
  });
});

test('calls that stay open with large header lists count with all that is held', async () => {
  await start({ unfinishedBytesMax: 4 << 20 });
  const small = await RawClient.connect(server.port);
  small.send(openCall(1, CHAT, [['x-small', 'v'.repeat(12_000)]]));
  await small.settled('small');
  expect(server.server.held.unfinishedBytes).toBeGreaterThan(12_000);
  const attacker = await RawClient.connect(server.port);
  await flood(
    attacker,
    repeated(1_000, (index) => openCall(2 * index + 1, CHAT, [['x-large', `${index} ${'v'.repeat(12_000)}`]])),
  );
  await attacker.closed();
  expect(new Set(server.refused)).toEqual(new Set(['unfinishedBytesMax']));
  await expect.poll(() => server.server.held).toMatchObject({ connections: 2, streams: 1 });
  small.send(data(1, Buffer.alloc(0), FLAG.endStream));
  await small.answer(1);
  expect(server.server.held.unfinishedBytes).toBe(0);
  small.close();
});

describe('clients that do not read', () => {
  test('with windows of 0 lose their connection when too much waits for them', async () => {
    await start({ outputBytesPerConnectionMax: 4 << 20 });
    const greeting = Buffer.concat([PREFACE, settings([SETTING.initialWindowSize, 0]), SETTINGS_ACK]);
    const attacker = await RawClient.connect(server.port, { greeting });
    await flood(
      attacker,
      repeated(1_000, (index) => unaryCall(2 * index + 1, ECHO, Buffer.alloc(10_000))),
    );
    await expectEnd(attacker, ERROR.enhanceYourCalm, 'outputBytesPerConnectionMax');
  });

  test('are not read either: what they ask for stays on their side', async () => {
    const attacker = await RawClient.connect(server.port);
    attacker.socket.pause();
    attacker.send(windowUpdate(0, 2 ** 30));
    const part = Buffer.concat([
      ...repeated(50, (index) => unaryCall(2 * index + 1, UNARY, JSON.stringify({ zeros: 50_000 }))),
    ]);
    expect(part.length).toBeLessThan(20_000);
    for (let round = 0; round < 40; round++) {
      const calls = [
        ...repeated(50, (index) => unaryCall(2 * (round * 50 + index) + 1, UNARY, JSON.stringify({ zeros: 50_000 }))),
      ];
      attacker.send(...calls);
      await serveBystander();
    }
    // 100 MB of answers: the kernel and the socket hold some, the server a part of the rest only.
    expect(server.server.held.outputBytes).toBeLessThan(16 << 20);
    attacker.socket.resume();
    const { data: body } = await attacker.answer(2 * 1_999 + 1);
    expect(body.length).toBe(50_005);
    expect(server.refused).toEqual([]);
    attacker.close();
  });

  test('of one stream leave the others of their connection as they are', async () => {
    const client = await RawClient.connect(server.port);
    for (let stream = 1; stream < 20; stream += 2)
      client.send(unaryCall(stream, PRODUCE, JSON.stringify({ count: 1_000, bytes: 10_000 })));
    client.send(windowUpdate(0, 1 << 20));
    // Ten streams are stalled at their windows of 65,535; more fit into the connection's.
    for (let stream = 21; stream < 121; stream += 2) client.send(unaryCall(stream, ECHO, Buffer.alloc(1_000)));
    expect((await client.answer(119)).data.length).toBe(1_005);
    expect(server.observed.written).toBeLessThan(10 * 60);
    client.close();
  });
});

describe('clients that write slowly', () => {
  test('in frames of one octet are served', async () => {
    const client = await RawClient.connect(server.port);
    const body = message(Buffer.alloc(30_000, 'x'));
    client.send(openCall(1, ECHO));
    await flood(
      client,
      repeated(body.length, (index) => data(1, body.subarray(index, index + 1))),
    );
    client.send(data(1, Buffer.alloc(0), FLAG.endStream));
    expect((await client.answer(1)).data).toEqual(body);
    client.close();
  });

  test('octet by octet hold no more than what they have sent', async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, () => RawClient.connect(server.port)));
    const bytes = Buffer.concat([openCall(1, ECHO), data(1, message(Buffer.alloc(1_000))).subarray(0, 500)]);
    for (const octet of bytes) {
      for (const client of slow) client.send(Buffer.from([octet]));
      await serveBystander();
    }
    expect(server.server.held.unfinishedBytes).toBeLessThan(50 * 1_024);
    for (const client of slow) client.close();
    await expect.poll(() => server.server.held.connections).toBe(1);
    expect(server.server.held.unfinishedBytes).toBe(0);
  });

  test('announce messages of any length and hold no more than what they have sent', async () => {
    const client = await RawClient.connect(server.port);
    const prefix = Buffer.concat([Buffer.alloc(1), uint32(4 << 20), Buffer.alloc(10)]);
    await flood(
      client,
      repeated(1_000, (index) => Buffer.concat([openCall(2 * index + 1, ECHO), data(2 * index + 1, prefix)])),
    );
    expect(server.server.held).toMatchObject({ streams: 1_000 });
    expect(server.server.held.unfinishedBytes).toBeLessThan(1_000 * 1_024);
    client.close();
    await expect.poll(() => server.server.held).toEqual(ONE_IDLE);
  });
});

describe('when the streams of all connections are taken', () => {
  const held = (count: number, part: (id: number) => Buffer): Buffer[] => [
    ...repeated(count, (index) => part(2 * index + 1)),
  ];

  test.each([
    { name: 'calls without requests', part: (id: number) => openCall(id, UNARY) },
    { name: 'calls that have begun a request', part: (id: number) => Buffer.concat([openCall(id, UNARY), BEGUN(id)]) },
    { name: 'requests without an end', part: (id: number) => Buffer.concat([openCall(id, UNARY), WHOLE(id)]) },
    { name: 'streams without a message', part: (id: number) => openCall(id, CHAT) },
    {
      name: 'streams in the middle of a message',
      part: (id: number) => Buffer.concat([openCall(id, CHAT), BEGUN(id)]),
    },
  ])('by $name, the connection with the most of them ends, and others are served', async ({ part }) => {
    await start({ streamsMax: 30 });
    const [most, fewer] = [await RawClient.connect(server.port), await RawClient.connect(server.port)];
    fewer.send(...held(12, part));
    most.send(...held(18, part));
    await expect.poll(() => server.server.held.streams).toBe(30);
    await serveBystander();
    await most.closed();
    const goaway = most.frames.find(({ type }) => type === FRAME.goaway);
    expect(goaway?.payload.readUInt32BE(4)).toBe(ERROR.enhanceYourCalm);
    expect([server.refused, server.server.held.streams]).toEqual([['streamsMax'], 12]);
    fewer.close();
  });

  test.each([
    { name: 'calls', part: (id: number) => unaryCall(id, UNARY, WAIT) },
    { name: 'streams that have sent a message', part: (id: number) => Buffer.concat([openCall(id, CHAT), WHOLE(id)]) },
  ])('by $name that wait for their answers, none of them ends, and more are refused', async ({ part }) => {
    await start({ streamsMax: 30 });
    const client = await RawClient.connect(server.port);
    client.send(...held(30, part));
    await expect.poll(() => server.server.held.streams).toBe(30);
    bystander.send(unaryCall(101, ECHO, 'one more'));
    const reset = await bystander.until(({ type, stream }) => type === FRAME.rstStream && stream === 101);
    expect(reset.payload.readUInt32BE(0)).toBe(ERROR.refusedStream);
    expect([client.isClosed, server.server.held.streams]).toEqual([false, 30]);
    client.close();
  });

  test('by a client itself, it keeps its connection, and more of its own are refused', async () => {
    await start({ streamsMax: 30 });
    const client = await RawClient.connect(server.port);
    client.send(...held(31, (id) => openCall(id, UNARY)));
    await client.until(({ type, stream }) => type === FRAME.rstStream && stream === 61);
    expect([client.isClosed, server.server.held.streams]).toEqual([false, 30]);
    client.close();
  });
});

test('streams beyond the limit are refused, and may be tried again', async () => {
  await start({ streamsPerConnectionMax: 10 });
  const client = await RawClient.connect(server.port);
  for (let index = 0; index < 20; index++) client.send(unaryCall(2 * index + 1, UNARY, WAIT));
  await client.settled('all sent');
  const refused = client.frames.filter((each: Frame) => each.type === FRAME.rstStream);
  expect(refused.map(({ payload }) => payload.readUInt32BE(0))).toEqual(new Array(10).fill(ERROR.refusedStream));
  client.send(rstStream(1, ERROR.cancel), unaryCall(101, ECHO, 'again'));
  expect((await client.answer(101)).data).toEqual(message('again'));
  client.close();
});
