/** The server of gRPC: octets, frames, header fields and bodies of clients, and header blocks by themselves. */
import { gzipSync } from 'node:zlib';
import { encodeFields, HeaderDecoder, type HeaderField, HpackError } from '../../../packages/grpc-server/src/index.ts';
import {
  FLAG,
  FRAME,
  frame,
  PREFACE,
  ping,
  rstStream,
  SETTING,
  SETTINGS_ACK,
  settings,
  windowUpdate,
} from '../../../packages/grpc-server/test/support/frames.ts';
import { data, fieldsOf, message, openCall, unaryCall } from '../../../packages/grpc-server/test/support/raw-client.ts';
import { FuzzedServer } from '../support/fuzzed-server.ts';
import { FuzzViolation, type Target } from '../target.ts';

const server = new FuzzedServer();
const GREETING = Buffer.concat([PREFACE, settings(), SETTINGS_ACK]);
const [ECHO, COLLECT, PRODUCE, CHAT] = ['Echo', 'Collect', 'Produce', 'Chat'].map((name) => `/fuzz.Service/${name}`);
const never = (): boolean => false;

/** What clients send, in the order in which they send it. */
function conversations(): readonly Buffer[] {
  const metadata = [
    ['grpc-timeout', '100m'],
    ['x-text', 'value'],
    ['x-bytes-bin', 'AAEC,AwQ'],
  ] as const;
  const block = encodeFields(fieldsOf(ECHO ?? ''));
  return [
    Buffer.concat([unaryCall(1, ECHO ?? '', 'hello', metadata), unaryCall(3, ECHO ?? '', Buffer.alloc(20_000))]),
    Buffer.concat([
      openCall(1, CHAT ?? ''),
      data(1, message('one')),
      data(1, message('two')),
      data(1, Buffer.alloc(0), 1),
    ]),
    Buffer.concat([openCall(1, COLLECT ?? ''), data(1, message('part').subarray(0, 6)), rstStream(1, 8), ping()]),
    Buffer.concat([unaryCall(1, PRODUCE ?? '', 'x'), windowUpdate(1, 70_000), windowUpdate(0, 70_000)]),
    Buffer.concat([settings([SETTING.initialWindowSize, 10]), unaryCall(1, PRODUCE ?? '', 'x'), windowUpdate(1, 90)]),
    Buffer.concat([
      settings([SETTING.headerTableSize, 0], [SETTING.maxFrameSize, 20_000]),
      unaryCall(1, ECHO ?? '', 'x'),
    ]),
    Buffer.concat([
      frame(
        FRAME.headers,
        FLAG.endStream | FLAG.padded | FLAG.priority,
        1,
        Buffer.concat([Buffer.alloc(6), block.subarray(0, 9)]),
      ),
      frame(FRAME.continuation, 0, 1, block.subarray(9, 20)),
      frame(FRAME.continuation, FLAG.endHeaders, 1, block.subarray(20)),
      frame(FRAME.priority, 0, 1, Buffer.alloc(5)),
      frame(FRAME.goaway, 0, 0, Buffer.alloc(8)),
    ]),
    Buffer.concat([
      openCall(1, ECHO ?? '', [['grpc-encoding', 'gzip']]),
      data(1, message(gzipSync('compressed'), 1), FLAG.endStream),
    ]),
  ];
}

/** Header blocks of requests to the four methods. */
const BLOCKS = [ECHO, COLLECT, PRODUCE, CHAT].map((path = '') => encodeFields(fieldsOf(path)));

/**
 * Frames whose lengths are right, so that most inputs get far: the octets say type, flags, stream and payload. A header
 * block of one octet stands for one of a valid request.
 */
function framesOf(bytes: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const [type = 0, flags = 0, stream = 0, length = 0] = bytes.subarray(at, at + 4);
    const payload = bytes.subarray(at + 4, at + 4 + length);
    const isRequest = type % 11 === FRAME.headers && payload.length === 1;
    const block = BLOCKS[(payload[0] ?? 0) & 3] ?? payload;
    frames.push(frame(type % 11, flags, streamOf(stream), isRequest ? block : payload));
    at += 4 + length;
  }
  return Buffer.concat(frames);
}

/** Most of them are 0 and the first streams of a client. */
function streamOf(octet: number): number {
  if (octet >= 0xf0) return octet;
  return Math.max(0, 2 * (octet & 7) - 1);
}

/** The reverse, for the corpus. Frames of more than 255 octets are left out. */
function opsOf(frames: Buffer): Buffer {
  const ops: Buffer[] = [];
  for (let at = 0; at + 9 <= frames.length; ) {
    const [type = 0, flags = 0, , , , stream = 0] = frames.subarray(at + 3);
    const payload = frames.subarray(at + 9, at + 9 + frames.readUIntBE(at, 3));
    const known = BLOCKS.findIndex((block) => block.equals(payload));
    const short = known < 0 ? payload : Buffer.from([known]);
    if (short.length < 256) ops.push(Buffer.from([type, flags, (stream + 1) >> 1, short.length]), short);
    at += 9 + payload.length;
  }
  return Buffer.concat(ops);
}

/** Fields behind those of a request, one a line; a line that begins with `-` takes one of those away. */
function requestOf(bytes: Buffer): Buffer {
  const lines = bytes.toString('latin1').split('\n');
  const removed = new Set(lines.filter((line) => line.startsWith('-')).map((line) => line.slice(1)));
  const added = lines
    .filter((line) => !line.startsWith('-'))
    .map((line): HeaderField => {
      const at = line.indexOf(':', 1);
      return at < 0 ? { name: line, value: '' } : { name: line.slice(0, at), value: line.slice(at + 1) };
    });
  const fields = [...fieldsOf(ECHO ?? '').filter(({ name }) => !removed.has(name)), ...added];
  const pseudo = fields.filter(({ name }) => name.startsWith(':'));
  const block = encodeFields(
    lines.length % 5 === 0 ? fields : [...pseudo, ...fields.filter((each) => !pseudo.includes(each))],
  );
  const parts: Buffer[] = [];
  for (let at = 0; at < block.length; at += 16_384) {
    const isLast = at + 16_384 >= block.length;
    const type = at === 0 ? FRAME.headers : FRAME.continuation;
    parts.push(frame(type, isLast ? FLAG.endHeaders : 0, 1, block.subarray(at, at + 16_384)));
  }
  return Buffer.concat([...parts, data(1, message('x'), FLAG.endStream)]);
}

/** A body in frames; the first octet says of which method, and how large the frames are. */
function bodyOf(bytes: Buffer): Buffer {
  const [choice = 0] = bytes;
  const path = [ECHO, COLLECT, PRODUCE, CHAT][choice & 3] ?? '';
  const size = [1, 10, 1_000, 16_384][(choice >> 2) & 3] ?? 1;
  const encoding = [['grpc-encoding', ['gzip', 'identity', 'br', ''][(choice >> 4) & 3] ?? '']] as const;
  const parts = [openCall(1, path, encoding)];
  const rest = bytes.subarray(1, size === 1 ? 2_000 : bytes.length);
  for (let at = 0; at < rest.length; at += size) parts.push(data(1, rest.subarray(at, at + size)));
  return Buffer.concat([...parts, data(1, Buffer.alloc(0), FLAG.endStream)]);
}

const DECODER = { tableBytesMax: 4_096, listBytesMax: 65_536, fieldsMax: 1_000 };

/** Blocks of one connection, each behind its length. What is decoded is the same once it is encoded and decoded. */
function decodeBlocks(bytes: Buffer): void {
  const decoder = new HeaderDecoder(DECODER);
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + (bytes[at] ?? 0));
    const list = decoder.decode(bytes, at + 1, end);
    if (list !== undefined && !isSameAgain(list)) {
      throw new FuzzViolation('a header list that was decoded, encoded and decoded once more is another list');
    }
    at = end;
  }
}

function isSameAgain(list: readonly HeaderField[]): boolean {
  const block = encodeFields(list);
  const again = new HeaderDecoder(DECODER).decode(block, 0, block.length) ?? [];
  const isSame = (field: HeaderField, at: number): boolean =>
    field.name === again[at]?.name && field.value === again[at]?.value;
  return again.length === list.length && list.every(isSame);
}

function blocks(): readonly Buffer[] {
  const sizes = ['20', '3fe11f', '3f45'].map((hex) => Buffer.from(hex, 'hex'));
  const added = Buffer.from(
    '4001610162 400a637573746f6d2d6b65790c637573746f6d2d76616c7565 be bf'.replace(/ /g, ''),
    'hex',
  );
  const request = encodeFields(fieldsOf(ECHO ?? ''));
  return [request, added, Buffer.concat([sizes[0] ?? added, added]), Buffer.concat([...sizes, request])].map((block) =>
    Buffer.concat([Buffer.from([block.length]), block, Buffer.from([2]), Buffer.from('bebf', 'hex')]),
  );
}

const REQUESTS = [
  'x-text:value\nx-bytes-bin:AAEC\ngrpc-timeout:1S',
  '-te\n-:authority\nhost:a\ncontent-length:6',
  'grpc-encoding:gzip\ngrpc-accept-encoding:identity\nuser-agent:fuzz\n-content-type\ncontent-type:application/grpc+proto',
  ':path:/\n-:method\n:method:GET\ncookie:a=b\ncookie:c=d',
].map((text) => Buffer.from(text));

function bodies(): readonly Buffer[] {
  const texts = [
    message('one'),
    Buffer.concat([message('one'), message('two'), message('')]),
    message(gzipSync('zip'), 1),
  ];
  return texts.flatMap((text, index) =>
    [0, 5, 10, 15].map((choice) => Buffer.concat([Buffer.from([choice + 16 * (index >> 1)]), text])),
  );
}

/** Several streams at once, each of which ends in another way. */
const SHORT_CALLS = [
  settings([SETTING.initialWindowSize, 5]),
  ...[1, 3, 5, 7, 9].map((stream) => openCall(stream, CHAT ?? '')),
  ...[9, 7, 5, 3, 1].map((stream) => data(stream, message('message'))),
  windowUpdate(1, 100),
  rstStream(3, 8),
  data(5, message(''), FLAG.endStream),
  settings([SETTING.initialWindowSize, 100]),
  data(7, message('xx')),
  windowUpdate(0, 100),
  unaryCall(11, ECHO ?? '', 'last'),
];

/** The memory of a connection is in it, and the garbage that a busy one leaves behind. */
const MEMORY = { memoryBaseBytes: 48 * 1024 * 1024, memoryFactor: 256 };

export const GRPC_SERVER_TARGETS: readonly Target[] = [
  {
    name: 'grpc-server-octets',
    corpus: () => conversations().map((bytes) => Buffer.concat([GREETING, bytes])),
    decode: (bytes) => server.take(Buffer.from(bytes)),
    expected: never,
    ...MEMORY,
  },
  {
    name: 'grpc-server-frames',
    corpus: () => [...conversations(), Buffer.concat(SHORT_CALLS)].map(opsOf),
    decode: (bytes) => server.take(Buffer.concat([GREETING, framesOf(Buffer.from(bytes))])),
    expected: never,
    ...MEMORY,
  },
  {
    name: 'grpc-server-fields',
    corpus: () => REQUESTS,
    decode: (bytes) => server.take(Buffer.concat([GREETING, requestOf(Buffer.from(bytes))])),
    expected: never,
    ...MEMORY,
  },
  {
    name: 'grpc-server-body',
    corpus: bodies,
    decode: (bytes) => server.take(Buffer.concat([GREETING, bodyOf(Buffer.from(bytes))])),
    expected: never,
    ...MEMORY,
  },
  {
    name: 'grpc-server-hpack',
    corpus: blocks,
    decode: (bytes) => decodeBlocks(Buffer.from(bytes)),
    expected: (error) => error instanceof HpackError,
    ...MEMORY,
  },
];
