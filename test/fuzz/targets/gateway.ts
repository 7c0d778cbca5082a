import { packVersioned, pipeCommand, pipeQuery, pipeWatch, unpackVersioned } from '@remora/protocol';
import * as etcd from '@remora/protocol/etcd';
import * as remora from '@remora/protocol/remora';
import { fromJson, toJson } from '../../../packages/gateway/src/etcd/json/json-codec.ts';
import { readJsonValues as jsonValues } from '../../../packages/gateway/src/etcd/json/json-reader.ts';
import * as kv from '../../../packages/gateway/src/etcd/kv-requests.ts';
import { ETCD_LIMITS } from '../../../packages/gateway/src/etcd/limits.ts';
import * as lock from '../../../packages/gateway/src/lock/lock-requests.ts';
import {
  validatePipeCommand,
  validatePipeQuery,
  validatePipeWatch,
} from '../../../packages/gateway/src/pipe/validate.ts';
import { checkSize, opBytes, REQUEST_LIMITS, txnBytes } from '../../../packages/gateway/src/request-limits.ts';
import { COMMANDS, QUERIES } from '../../../packages/protocol/test/support/samples.ts';
import { isRefusal, type Target } from '../target.ts';
import { nestedTxn } from './nested-txn.ts';

// Requests of clients: decoded, then validated at the entry. What passes is within the limits.

/** The part of a generated codec that is used here. */
interface Message<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
  fromPartial(parts: object): T;
}

/** What the generated code throws for bytes that are not protobuf. gRPC answers it with a status. */
class NotProtobuf extends Error {
  override readonly name = 'NotProtobuf';
}

function protobuf<T>(
  name: string,
  message: Message<T>,
  parts: readonly object[],
  check: (request: T) => unknown,
): Target {
  return {
    name,
    corpus: () => parts.map((part) => message.encode(message.fromPartial(part)).finish()),
    decode(bytes) {
      check(decoded(message, bytes));
    },
    expected: (error) => error instanceof NotProtobuf || isRefusal(error),
  };
}

function decoded<T>(message: Message<T>, bytes: Uint8Array): T {
  try {
    return message.decode(bytes);
  } catch (cause) {
    if (cause instanceof TypeError || !(cause instanceof Error)) throw cause;
    throw new NotProtobuf(cause.message, { cause });
  }
}

const key = Buffer.from('orders/42');
const put = { request: { $case: 'requestPut', value: { key, value: Buffer.from('v'), lease: -1n } } };
const range = { request: { $case: 'requestRange', value: { key, rangeEnd: Buffer.from([0]), limit: 3n } } };
const del = { request: { $case: 'requestDeleteRange', value: { key: Buffer.from('x') } } };
const compares = [
  { key, result: 0, target: 0, targetUnion: { $case: 'version', value: -(2n ** 63n) } },
  { key, result: 3, target: 3, targetUnion: { $case: 'value', value: Buffer.from('v') } },
  { key, result: 1, target: 4, targetUnion: { $case: 'lease', value: 2n ** 63n - 1n } },
];

const TXN = etcd.TxnRequest.encode(
  (etcd.TxnRequest as Message<etcd.TxnRequest>).fromPartial({
    compare: compares,
    success: [put],
    failure: [range, del],
  }),
).finish();

const ETCD_TARGETS: readonly Target[] = [
  protobuf(
    'etcd-range',
    etcd.RangeRequest,
    [{ key, limit: -1n, revision: 2n ** 62n, sortOrder: 2, sortTarget: 4 }],
    (r) => kv.toRangeOp(r),
  ),
  protobuf('etcd-put', etcd.PutRequest, [{ key, value: key, lease: 5n, prevKv: true }], (r) =>
    checkSize(opBytes(kv.toPutOp(r)), ETCD_LIMITS),
  ),
  protobuf('etcd-delete', etcd.DeleteRangeRequest, [{ key, rangeEnd: Buffer.from('z') }], (r) => kv.toDeleteOp(r)),
  {
    ...protobuf('etcd-txn', etcd.TxnRequest, [], (r) => checkSize(txnBytes(kv.toTxn(r, ETCD_LIMITS)), ETCD_LIMITS)),
    corpus: () => [0, 2, 9, 5_000].map((depth) => nestedTxn(depth, TXN)),
  },
  protobuf('etcd-compact', etcd.CompactionRequest, [{ revision: 77n, physical: true }], (r) =>
    kv.toCompactRevision(r.revision),
  ),
  protobuf('etcd-lease-grant', etcd.LeaseGrantRequest, [{ ID: -1n, TTL: 60n }], () => {}),
  protobuf(
    'etcd-watch',
    etcd.WatchRequest,
    [
      { requestUnion: { $case: 'createRequest', value: { key, startRevision: 4n, filters: [0, 1], watchId: 3n } } },
      { requestUnion: { $case: 'cancelRequest', value: { watchId: -1n } } },
      { requestUnion: { $case: 'progressRequest', value: {} } },
    ],
    (r) => r.requestUnion?.$case === 'createRequest' && kv.toKeyRange(r.requestUnion.value),
  ),
];

/** JSON of etcd's gateway: whatever is read as a message, is written as one. */
const json: Target = {
  name: 'etcd-json',
  corpus: () =>
    [
      '{"key":"Zm9v","value":"YmFy","lease":"7587862094000000000"}',
      '{"compare":[{"target":"VALUE","key":"Zm9v","value":"YmFy"}],"success":[{"request_put":{"key":"YQ=="}}]}',
      '{"create_request":{"key":"Zm9v","filters":["NOPUT",1]}}\n{"cancelRequest":{"watch_id":-1}} null [true, 1e5]',
    ].map((text) => Buffer.from(text)),
  decode(bytes) {
    for (const value of jsonValues(Buffer.from(bytes).toString())) {
      for (const type of ['PutRequest', 'TxnRequest', 'WatchRequest']) {
        const message = fromJson(`etcdserverpb.${type}`, value);
        JSON.stringify(toJson(`etcdserverpb.${type}`, message));
      }
    }
  },
  expected: (error) => error instanceof SyntaxError || isRefusal(error),
};

const lockId = { namespace: 'n', name: key };
const session = { id: 2n ** 62n, incarnation: 5n };
const owner = { session, token: 'tökén' };

const LOCK_TARGETS: readonly Target[] = [
  protobuf(
    'lock-acquire',
    remora.AcquireRequest,
    [{ lock: lockId, owner, wait: true, timeoutMs: 5n, depthMax: 3, data: key, attempt: 2, requestId: 'r' }],
    (r) => [lock.toAcquire(r), lock.toWaitMs(r.timeoutMs), lock.toRequestId(r.requestId)],
  ),
  protobuf('lock-release', remora.ReleaseRequest, [{ lock: lockId, owner, all: true }], lock.toRelease),
  protobuf('lock-cancel', remora.CancelRequest, [{ lock: lockId, owner, attempt: 1 }], lock.toCancel),
  protobuf('lock-list', remora.ListRequest, [{ namespace: 'n', prefix: key, after: key, limit: 10 }], lock.toList),
  protobuf('lock-check', remora.CheckRequest, [{ checks: [{ lock: lockId, version: 4n }] }], lock.toCheck),
  protobuf(
    'lock-session',
    remora.OpenSessionRequest,
    [{ ttlMs: 10_000n, attributes: { host: 'a', ['__proto__']: 'b' } }],
    (r) => [lock.toTtlMs(r.ttlMs), lock.toAttributes(r.attributes)],
  ),
];

function pipe(name: string, corpus: readonly unknown[], check: (raw: unknown) => void): Target {
  return {
    name,
    corpus: () => corpus.map((raw) => packVersioned(1, raw)),
    decode: (bytes) => check(unpackVersioned(1, bytes, name)),
    expected: isRefusal,
  };
}

const PIPE_TARGETS: readonly Target[] = [
  pipe(
    'pipe-checked-command',
    COMMANDS.map((command) => pipeCommand.encodeRequest({ command, requestId: 'r', timeoutMs: 5 })),
    (raw) => validatePipeCommand(pipeCommand.decodeRequest(raw), REQUEST_LIMITS),
  ),
  pipe(
    'pipe-checked-query',
    QUERIES.map((query) => pipeQuery.encodeRequest({ query, timeoutMs: 5 })),
    (raw) => validatePipeQuery(pipeQuery.decodeRequest(raw), REQUEST_LIMITS),
  ),
  pipe('pipe-checked-watch', [[1], [0, key, null, 4, 7]], (raw) => validatePipeWatch(pipeWatch.decodeRequest(raw))),
];

export const GATEWAY_TARGETS: readonly Target[] = [...ETCD_TARGETS, json, ...LOCK_TARGETS, ...PIPE_TARGETS];
