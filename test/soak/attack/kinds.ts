/** What anonymous attackers send: the beginnings of input of every kind, and never the end. */
import { BUILD_VERSIONS, OPENING, rangeText } from '@remora/base';
import { PIPE_HELLO, RPC_SERVICE } from '@remora/protocol';
import { frameBytes } from '../../../packages/base/src/node/frames/frame-parser.ts';
import { encodeFields } from '../../../packages/grpc-server/src/index.ts';
import { FLAG, FRAME, frame, PREFACE } from '../../../packages/grpc-server/test/support/frames.ts';
import { data, fieldsOf, GREETING, message, openCall } from '../../../packages/grpc-server/test/support/raw-client.ts';

export interface AttackKind {
  readonly name: string;
  readonly port: 'client' | 'peer' | 'http' | 'health';
  /** Sent at once. */
  readonly begin: Buffer;
  /** Sent again and again afterwards. */
  readonly goOn?: Buffer;
  /** How many connections of this kind there are for each of another. */
  readonly weight?: number;
}

const MIB = 1 << 20;
const RANGE = '/etcdserverpb.KV/Range';
const PUT = '/etcdserverpb.KV/Put';
const WATCH = '/etcdserverpb.Watch/Watch';
/** Below the limit of streams of a connection. */
const CALLS = 1_000;
const WINDOW = 65_000;
/** Each with as much as fits into the window of a stream. */
const LARGE_CALLS = 8;
const NODE_HELLO = {
  service: RPC_SERVICE,
  versions: rangeText(BUILD_VERSIONS),
  cluster: '',
  node: '0',
  incarnation: 'x',
};

const words = (hello: object): Buffer => Buffer.concat(frameBytes('data', Buffer.from(JSON.stringify(hello))));
/** A frame without its last byte. */
const mostOf = (bytes: number): Buffer => Buffer.concat(frameBytes('data', Buffer.alloc(bytes))).subarray(0, -1);
const times = (count: number, part: (id: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => part(2 * index + 1)));
/** The largest payload of an HTTP/2 frame. */
const PART = 16_000;
const inParts = (id: number, bytes: Buffer): Buffer[] => {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += PART) parts.push(data(id, bytes.subarray(at, at + PART)));
  return parts;
};

const http = (method: string, target: string, headers: readonly string[], body = ''): Buffer =>
  Buffer.from([`${method} ${target} HTTP/1.1`, 'Host: localhost', ...headers, '', body].join('\r\n'));
const ACQUIRE = '/v1/locks/default/attacked/acquire';
const JSON_TYPE = 'Content-Type: application/json';
const HALF_HEADER = Buffer.from('GET /health HTTP/1.1\r\nHost: local');

export const ATTACK_KINDS: readonly AttackKind[] = [
  { name: 'silence', port: 'client', begin: Buffer.alloc(0) },
  { name: 'half an opening', port: 'client', begin: OPENING.subarray(0, 4) },
  { name: 'half a hello', port: 'client', begin: Buffer.concat([OPENING, words(PIPE_HELLO).subarray(0, 20)]) },
  { name: 'a hello alone', port: 'client', begin: Buffer.concat([OPENING, words(PIPE_HELLO)]) },
  {
    ...{ name: 'most of a frame', port: 'client', weight: 4 },
    begin: Buffer.concat([OPENING, words(PIPE_HELLO), mostOf(1.5 * MIB)]),
  },
  {
    ...{ name: 'a frame byte by byte', port: 'client', goOn: Buffer.alloc(1) },
    begin: Buffer.concat([OPENING, words(PIPE_HELLO), mostOf(1.5 * MIB).subarray(0, 10_000)]),
  },
  { name: 'a preface without settings', port: 'client', begin: PREFACE },
  {
    ...{ name: 'a header block', port: 'client' },
    begin: Buffer.concat([
      GREETING,
      frame(FRAME.headers, FLAG.endStream, 1, encodeFields(fieldsOf(RANGE))),
      frame(FRAME.continuation, 0, 1, Buffer.alloc(10_000, 0x82)),
    ]),
  },
  {
    ...{ name: 'CONTINUATION without end', port: 'client', goOn: frame(FRAME.continuation, 0, 1) },
    begin: Buffer.concat([GREETING, frame(FRAME.headers, FLAG.endStream, 1, encodeFields(fieldsOf(RANGE)))]),
  },
  {
    ...{ name: 'calls without requests', port: 'client', weight: 2 },
    begin: Buffer.concat([GREETING, times(CALLS, (id) => openCall(id, RANGE))]),
  },
  {
    ...{ name: 'most of large requests', port: 'client', weight: 4 },
    begin: Buffer.concat([
      GREETING,
      times(LARGE_CALLS, (id) =>
        Buffer.concat([openCall(id, PUT), ...inParts(id, message(Buffer.alloc(MIB)).subarray(0, WINDOW))]),
      ),
    ]),
  },
  {
    ...{ name: 'streams without requests', port: 'client', weight: 2 },
    begin: Buffer.concat([GREETING, times(CALLS, (id) => openCall(id, WATCH))]),
  },
  { name: 'half a header of HTTP', port: 'client', begin: HALF_HEADER },
  { name: 'silence', port: 'http', begin: Buffer.alloc(0) },
  { name: 'half a header', port: 'http', begin: HALF_HEADER, goOn: Buffer.from('x') },
  {
    ...{ name: 'a small body', port: 'http' },
    begin: http('POST', ACQUIRE, [JSON_TYPE, 'Content-Length: 4000'], '{'.padEnd(3_999)),
  },
  {
    ...{ name: 'most of a body', port: 'http' },
    begin: http('POST', ACQUIRE, [JSON_TYPE, 'Content-Length: 250000'], '{'.padEnd(249_999)),
  },
  {
    ...{ name: "most of a body of etcd's gateway", port: 'http' },
    begin: http('POST', '/v3/kv/put', ['Content-Length: 1500000'], '{'.padEnd(1_499_999)),
  },
  {
    ...{ name: 'chunks without end', port: 'http', goOn: Buffer.from('1\r\n \r\n') },
    begin: http('POST', ACQUIRE, [JSON_TYPE, 'Transfer-Encoding: chunked']),
  },
  { name: 'half an opening', port: 'peer', begin: OPENING.subarray(0, 4) },
  { name: 'half a hello', port: 'peer', begin: Buffer.concat([OPENING, words(NODE_HELLO).subarray(0, 20)]) },
  {
    ...{ name: 'most of a frame', port: 'peer' },
    begin: Buffer.concat([OPENING, words(NODE_HELLO), mostOf(60_000)]),
  },
  {
    ...{ name: 'a frame that is too large', port: 'peer' },
    begin: Buffer.concat([OPENING, words(NODE_HELLO), mostOf(MIB)]),
  },
  { name: 'silence', port: 'health', begin: Buffer.alloc(0) },
  { name: 'half a header', port: 'health', begin: HALF_HEADER, weight: 3 },
];
