import { BUILD_VERSIONS, OPENING, rangeText } from '@remora/base';
import {
  masterHeartbeat,
  masterJoin,
  masterView,
  NodeHeartbeat,
  PIPE_HELLO,
  PIPE_SERVICE,
  pipeCommand,
  pipeQuery,
  pipeWatch,
  RPC_SERVICE,
  rangeExecute,
  rangeWatch,
} from '@remora/protocol';
import * as etcd from '@remora/protocol/etcd';
import * as remora from '@remora/protocol/remora';
import { encodeFrame } from '../../../packages/protocol/src/rpc/frame.ts';
import { samplesOf } from '../../../packages/protocol/test/support/arbitrary.ts';
import * as samples from '../../../packages/protocol/test/support/samples.ts';
import { decodeFrame as decodeRaftFrame } from '../../../packages/raft/src/multi/transport/codec.ts';
import {
  FRAMES_SERVICE,
  helloOf,
  SNAPSHOT_SERVICE,
} from '../../../packages/raft/src/multi/transport/node/handshake.ts';
import { framedBytes, grpcExchange, grpcMessage, http2Bytes, rawExchange } from '../live/exchange.ts';
import { ALIVE_MS, LIVE_MEMORY_BASE_BYTES, type LiveNode, liveNode } from '../live/live-node.ts';
import { FuzzViolation, type Target } from '../target.ts';
import { nestedTxn } from './nested-txn.ts';
import { RAFT_TARGETS } from './raft.ts';

// A listening node, and everything that may be sent to its three ports: by anyone, and by a peer that has identified
// itself. After each input it serves its clients as before. A peer's statements in well-formed messages are trusted
// (docs/testing/fuzz.md).

/** Real connections: a few milliseconds each. */
const RUNS = 40;
/** Both ends of a connection are in this process, with their buffers. */
const MEMORY_FACTOR = 256;

type Send = (node: LiveNode, bytes: Uint8Array) => Promise<unknown>;

function live(name: string, corpus: () => readonly Uint8Array[], send: Send): Target {
  return {
    name: `live-${name}`,
    runs: RUNS,
    memoryBaseBytes: LIVE_MEMORY_BASE_BYTES,
    memoryFactor: MEMORY_FACTOR,
    corpus,
    prepare: liveNode,
    async decode(bytes) {
      const node = await liveNode();
      await send(node, bytes);
      await node.check();
    },
    expected: () => false,
  };
}

// -------------------------------------------------------------------------------------------------- connections

const REQUEST_HEADERS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'a'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;

const put = etcd.PutRequest.encode(etcd.PutRequest.fromPartial({ key: Buffer.from('k'), value: Buffer.from('v') }));

const connections = (path: string, service: string) => (): readonly Uint8Array[] => [
  framedBytes([JSON.stringify({ service }), Buffer.alloc(9)]),
  framedBytes(['{"service":"', '{}', '[]']),
  Buffer.concat([OPENING, Buffer.from('ffffffff', 'hex')]),
  http2Bytes([...REQUEST_HEADERS, [':path', path]], grpcMessage(put.finish())),
  Buffer.from('GET /health HTTP/1.1\r\nhost: a\r\n\r\n'),
  // A TLS ClientHello, up to its lengths.
  Buffer.from('16030100c8010000c40303', 'hex'),
];

const CONNECTIONS: readonly Target[] = [
  live('client-bytes', connections('/etcdserverpb.KV/Put', PIPE_SERVICE), ({ options }, bytes) =>
    rawExchange(options.clientListen.port, bytes),
  ),
  live('peer-bytes', connections('/remora.internal.Rpc/Open', RPC_SERVICE), ({ options }, bytes) =>
    rawExchange(options.peerListen.port, bytes),
  ),
];

// -------------------------------------------------------------------------------------------------- messages of calls

const key = Buffer.from('k');
const session = { id: 5n, incarnation: 6n };
const owner = { session, token: 't' };

/** The calls of clients, selected by the number at the beginning of an input. The rest is the bytes of the stream. */
const CALLS: readonly { readonly path: string; readonly messages: readonly Uint8Array[] }[] = [
  { path: '/etcdserverpb.KV/Txn', messages: [nestedTxn(2), nestedTxn(5_000), nestedTxn(100_000)] },
  { path: '/etcdserverpb.KV/Put', messages: [put.finish()] },
  {
    path: '/etcdserverpb.Lease/LeaseGrant',
    messages: [etcd.LeaseGrantRequest.encode({ ID: -1n, TTL: 1n }).finish()],
  },
  {
    path: '/etcdserverpb.Lease/LeaseKeepAlive',
    messages: [etcd.LeaseKeepAliveRequest.encode({ ID: 77n }).finish()],
  },
  {
    path: '/etcdserverpb.Watch/Watch',
    messages: [
      etcd.WatchRequest.encode(
        etcd.WatchRequest.fromPartial({ requestUnion: { $case: 'createRequest', value: { key, watchId: 3n } } }),
      ).finish(),
    ],
  },
  {
    path: '/remora.v1.Lock/Acquire',
    messages: [
      remora.AcquireRequest.encode(
        remora.AcquireRequest.fromPartial({ lock: { name: key }, owner, wait: true, timeoutMs: 5n }),
      ).finish(),
    ],
  },
  {
    path: '/remora.v1.Lock/KeepAlive',
    messages: [remora.KeepAliveRequest.encode({ session, sequence: 3n }).finish()],
  },
];

const calls = live(
  'client-calls',
  () =>
    CALLS.flatMap(({ messages }, i) =>
      messages.map((message) => Buffer.concat([Buffer.from([i]), grpcMessage(message)])),
    ),
  ({ options }, bytes) => {
    const { path } = CALLS[(bytes[0] ?? 0) % CALLS.length] ?? { path: '/' };
    return grpcExchange(options.clientListen.port, { path, body: bytes.subarray(1) });
  },
);

/** The calls of the SDK. */
const pipeCalls = live(
  'pipe-calls',
  () => [
    encodeFrame([
      [0, 1, pipeCommand.name],
      [0, 2, pipeQuery.name],
      [0, 3, pipeWatch.name],
      ...samples.COMMANDS.map((command, i) => [
        ...[1, 10 + i, 1],
        pipeCommand.encodeRequest({ command, requestId: `r${i}`, timeoutMs: 5 }),
      ]),
      ...samples.QUERIES.map((query, i) => [...[1, 100 + i, 2], pipeQuery.encodeRequest({ query, timeoutMs: 5 })]),
      [3, 200, 3, [0, key, null, 0, 7]],
      [5, 200, 100],
      [2, 200],
    ]),
  ],
  ({ options }, body) => rawExchange(options.clientListen.port, framedBytes([JSON.stringify(PIPE_HELLO), body])),
);

// -------------------------------------------------------------------------------------------------- peers

/** The hello of an unknown peer, with the right cluster. */
function strangerHello({ clusterId }: LiveNode, service: string): string {
  return JSON.stringify(helloOf({ clusterId, nodeId: 9, incarnation: 'fuzz' }, service));
}

const { nodeId: _, ...descriptor } = samples.NODE;

const peerFrames: Target = live(
  'peer-calls',
  () => [
    encodeFrame([
      [0, 1, rangeExecute.name],
      ...samples.REQUESTS.map((request, i) => [1, 10 + i, 1, rangeExecute.encodeRequest(request)]),
    ]),
    encodeFrame([
      [0, 1, rangeWatch.name],
      ...samples.WATCH_REQUESTS.map((request, i) => [3, 10 + i, 1, rangeWatch.encodeRequest(request)]),
      [4, 10, rangeWatch.encodeRequest({ kind: 'progress', question: 1 })],
      [5, 10, 2 ** 53 - 1],
    ]),
    encodeFrame([
      [0, 1, masterJoin.name],
      [0, 2, masterHeartbeat.name],
      [0, 3, masterView.name],
      [1, 10, 1, masterJoin.encodeRequest({ nodeId: 0, descriptor })],
      ...samplesOf(NodeHeartbeat, 5).map((beat, i) => [
        1,
        20 + i,
        2,
        masterHeartbeat.encodeRequest(beat as NodeHeartbeat),
      ]),
      [1, 12, 3, null],
    ]),
  ],
  (node, body) => rawExchange(node.options.peerListen.port, framedBytes([strangerHello(node, RPC_SERVICE), body])),
);

/** A well-formed frame for a group of this node would be trusted: the peer might lead the group. */
function concernsUs(body: Uint8Array): boolean {
  try {
    return decodeRaftFrame(body).some(({ groupId }) => groupId <= 2);
  } catch {
    return false;
  }
}

const raftStreams = [FRAMES_SERVICE, SNAPSHOT_SERVICE].map(
  (service): Target =>
    live(
      `peer-${service.replace('.', '-')}`,
      () =>
        RAFT_TARGETS.filter(({ name }) => /frame|heartbeat|sender/.test(name))
          .flatMap((target) => target.corpus())
          .filter((body) => !concernsUs(body)),
      (node, body) => {
        if (concernsUs(body)) return Promise.resolve();
        return rawExchange(node.options.peerListen.port, framedBytes([strangerHello(node, service), body]));
      },
    ),
);

// -------------------------------------------------------------------------------------------------- handshakes

/** The hello of a client. */
const pipeHandshake = live(
  'pipe-handshake',
  () =>
    [
      JSON.stringify(PIPE_HELLO),
      `{"service":"${PIPE_SERVICE}","protocol":"1"}`,
      `{"service":"${PIPE_SERVICE}"}`,
      `{"service":"${RPC_SERVICE}","protocol":2}`,
    ].map((text) => Buffer.from(text)),
  ({ options }, bytes) => rawExchange(options.clientListen.port, framedBytes([bytes])),
);

/** The hello of a peer. */
const peerHandshake = live(
  'peer-handshake',
  () =>
    [
      `{"service":"${RPC_SERVICE}","protocol":"1","cluster":"c","node":"9","incarnation":"i"}`,
      `{"service":"${RPC_SERVICE}","versions":"${rangeText(BUILD_VERSIONS)}","cluster":"","node":"1e15","incarnation":""}`,
      JSON.stringify({ service: RPC_SERVICE, protocol: '1', node: '8', incarnation: 'i'.repeat(5_000) }),
      `{"service":"${FRAMES_SERVICE}","version":"3","cluster":"c","node":"9","incarnation":null}`,
      `{"service":"${SNAPSHOT_SERVICE}","version":3}`,
    ].map((text) => Buffer.from(text)),
  ({ options }, bytes) => rawExchange(options.peerListen.port, framedBytes([bytes])),
);

// -------------------------------------------------------------------------------------------------- HTTP

const http = live(
  'http',
  () =>
    [
      'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(20),
      `GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(3_000)}\r\n`,
      `GET /${'a'.repeat(200_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
      `POST /health HTTP/1.1\r\nhost: a\r\ncontent-length: 200000\r\n\r\n${'b'.repeat(200_000)}`,
      'POST /ready HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\nslow',
      'BREW /health HTTP/1.1\r\nhost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\r\n',
    ].map((text) => Buffer.from(text)),
  async ({ options }, bytes) => {
    await rawExchange(options.httpListen.port, bytes);
    const answer = await rawExchange(
      options.httpListen.port,
      Buffer.from('GET /health HTTP/1.0\r\nhost: localhost\r\n\r\n'),
      ALIVE_MS,
    );
    if (!answer.toString('latin1').startsWith('HTTP/1.1 200')) {
      throw new FuzzViolation(`/health answers ${answer.toString('latin1').slice(0, 60)}`);
    }
  },
);

export const LIVE_TARGETS: readonly Target[] = [
  ...CONNECTIONS,
  calls,
  pipeCalls,
  peerFrames,
  ...raftStreams,
  pipeHandshake,
  peerHandshake,
  http,
];
