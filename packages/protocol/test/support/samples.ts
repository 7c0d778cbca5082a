import { utf8 } from '@remora/base';
import type { LockId, Owner, PublicOwner } from '@remora/lock';
import type { CommandBatch } from '../../src/internal/codec/entry.ts';
import type { Command } from '../../src/internal/command.ts';
import type { CommandResult } from '../../src/internal/command-result.ts';
import type { NodeDescriptor, RangeDescriptor } from '../../src/internal/descriptor.ts';
import type { Compare, KeyValue, KvOp, RangeOp, Txn } from '../../src/internal/kv-types.ts';
import type { Query } from '../../src/internal/query.ts';
import type { RangeRequest, WatchRequest } from '../../src/internal/range-api.ts';
import type { SessionQuery, SessionQueryResult } from '../../src/internal/session-api.ts';

/** One fixed message of every kind, for the tests: their encoding is the schema that is pinned. */
const LEASE = 0x1234_5678_9abc_def0n;
const key = utf8('orders/42');
const lock: LockId = { namespace: 'default', name: utf8('orders/42') };
const owner: Owner = { session: { lease: LEASE, incarnation: 17 }, token: '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d' };
const shown: PublicOwner = { session: owner.session, id: owner.token };

const kv: KeyValue = { key, value: utf8('v'), createRevision: 5, modRevision: 2 ** 53 - 1, version: 3, lease: LEASE };

const rangeOp: RangeOp = {
  type: 'range',
  key,
  end: utf8('orders/43'),
  limit: 10,
  revision: 9,
  sortOrder: 'descend',
  sortTarget: 'mod',
  keysOnly: true,
  countOnly: false,
  minModRevision: 1,
  maxModRevision: 2,
  minCreateRevision: 3,
  maxCreateRevision: 4,
};

const put: KvOp = {
  type: 'put',
  key,
  value: utf8('value'),
  lease: 0n,
  prevKv: true,
  ignoreValue: false,
  ignoreLease: false,
};
const del: KvOp = { type: 'delete', key, end: new Uint8Array(0), prevKv: false };

const compares: Compare[] = [
  { key, result: 'equal', target: { of: 'version', value: 0 } },
  { key, end: utf8('z'), result: 'greater', target: { of: 'create', value: 1 } },
  { key, result: 'less', target: { of: 'mod', value: 2 } },
  { key, result: 'notEqual', target: { of: 'lease', value: LEASE } },
  { key, result: 'equal', target: { of: 'value', value: utf8('v') } },
];

const inner: Txn = { compare: [], success: [put], failure: [] };
const txn: Txn = { compare: compares, success: [put, del, rangeOp], failure: [{ type: 'txn', txn: inner }] };

export const COMMANDS: readonly Command[] = [
  { type: 'txn', txn },
  { type: 'kv', op: { ...put, lease: LEASE } as Extract<KvOp, { type: 'put' }> },
  { type: 'kv', op: del },
  { type: 'compact', revision: 77 },
  { type: 'leaseGrant', id: LEASE, ttlMs: 10_000, attributes: { client: 'a', host: 'b' } },
  { type: 'leaseRevoke', id: -1n, incarnation: 0 },
  { type: 'leaseExpire', id: LEASE, incarnation: 4, term: 9 },
  {
    type: 'lock',
    command: {
      type: 'acquire',
      lock,
      owner,
      wait: true,
      waitUntilMs: 1_234.5,
      deadlineMs: 99_999,
      attempt: 2,
      depthMax: 1,
      data: utf8('who'),
    },
  },
  { type: 'lock', command: { type: 'release', lock, owner, all: true, deadlineMs: 0, attempt: 2 } },
  { type: 'lock', command: { type: 'cancel', lock, owner, deadlineMs: 5, attempt: 2 } },
  { type: 'lock', command: { type: 'forceRelease', lock } },
  { type: 'lock', command: { type: 'downgrade', lock, owner, attempt: 3 } },
  { type: 'lock', command: { type: 'setCapacity', lock, capacity: 3 } },
  { type: 'noop' },
];

export const QUERIES: readonly Query[] = [
  { type: 'range', op: rangeOp, serializable: true },
  { type: 'readTxn', txn, serializable: false },
  { type: 'leaseKeepAlive', id: LEASE, incarnation: 3 },
  { type: 'leaseTimeToLive', id: 7n, keys: true },
  { type: 'leases' },
  { type: 'lock', query: { type: 'show', lock } },
  { type: 'lock', query: { type: 'show', lock, allKinds: true } },
  { type: 'lock', query: { type: 'list', namespace: 'n', prefix: utf8('p'), after: utf8(''), limit: 10 } },
  { type: 'lock', query: { type: 'check', checks: [{ lock, version: 12 }] } },
  { type: 'lockAwait', lock, owner },
  { type: 'grantEnd', lock, version: 12, session: owner.session },
  { type: 'grantEnd', lock, version: 12, session: owner.session, known: 0 },
  { type: 'closedRevision', revision: 70 },
  { type: 'scan', key, end: utf8('p'), revision: 70, bytes: 4_096 },
  { type: 'scan', key, end: utf8(''), revision: 0, bytes: 1, limit: 10, keysOnly: true },
  { type: 'history', key, before: 70, limit: 10, bytes: 4_096 },
  { type: 'status' },
];

export const COMMAND_RESULTS: readonly CommandResult[] = [
  { type: 'put', prev: undefined },
  { type: 'put', prev: kv },
  { type: 'range', kvs: [kv], more: true, count: 2 },
  { type: 'delete', deleted: 1, prev: [kv] },
  {
    type: 'txn',
    succeeded: false,
    results: [
      { type: 'put', prev: undefined },
      { type: 'txn', succeeded: true, results: [] },
    ],
  },
  { type: 'compact' },
  { type: 'leaseGrant', id: LEASE, incarnation: 4, ttlMs: 5_000 },
  { type: 'leaseRevoke' },
  { type: 'lock', result: { type: 'granted', version: 12, depth: 1, lockTimeMs: 1_700_000_000_000 } },
  { type: 'lock', result: { type: 'queued', position: 3 } },
  {
    type: 'lock',
    result: { type: 'busy', holder: { owner: shown, version: 12, depth: 1, lockTimeMs: 5, data: utf8('d') } },
  },
  { type: 'lock', result: { type: 'released', depth: 0, version: 12 } },
  { type: 'lock', result: { type: 'canceled', released: false } },
  { type: 'lock', result: { type: 'capacity', permits: 2, capacity: 3 } },
  { type: 'lock', result: { type: 'refused', code: 'LOCK_UPGRADE_CONFLICT', message: 'another one' } },
  { type: 'lock', result: { type: 'refused', code: 'LOCK_TIMEOUT', message: 'too late' } },
  { type: 'noop' },
];

export const RANGE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: utf8('m'),
  epoch: { confVersion: 1, version: 2 },
  replicas: [
    { replicaId: 1, nodeId: 1, type: 'voter' },
    { replicaId: 2, nodeId: 3, type: 'learner' },
  ],
  revisionSource: 'master',
};

export const NODE: NodeDescriptor = {
  nodeId: 1,
  name: 'n1',
  incarnation: 'abc',
  roles: ['master', 'data', 'gateway'],
  peerAddress: '127.0.0.1:1',
  clientAddress: '127.0.0.1:2',
  httpAddress: '127.0.0.1:3',
  version: '0.1.0',
};

export const REQUESTS: readonly RangeRequest[] = [
  ...COMMANDS.map((command) => ({
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    requestId: 'r-1',
    deadlineMs: 1_000.25,
    authRevision: 5,
    body: { kind: 'command' as const, command },
  })),
  ...QUERIES.map((query) => ({
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    requestId: '',
    deadlineMs: 0,
    authRevision: 0,
    body: { kind: 'query' as const, query, notBefore: 7 },
  })),
  ...COMMANDS.slice(0, 2).map((command) => ({
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    requestId: 'r-2',
    deadlineMs: 1_000,
    authRevision: 5,
    body: { kind: 'recall' as const, command },
  })),
];

export const WATCH_REQUESTS: readonly WatchRequest[] = [
  {
    kind: 'create',
    watchId: 1,
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    span: { start: key, end: utf8('z') },
    startRevision: 5,
    noPut: true,
    noDelete: false,
    prevKv: true,
  },
  { kind: 'cancel', watchId: 1 },
  { kind: 'progress', question: 7 },
];

export const BATCH: CommandBatch = {
  rangeTimeMs: 123.5,
  wallMs: 1_700_000_000_000,
  epoch: { confVersion: 1, version: 2 },
  commands: COMMANDS.map((command, i) => ({ requestId: `request-${i}`, deadlineMs: 1_000 + i, command })),
};

export const BLOCK_BATCH: CommandBatch = { ...BATCH, block: { first: 300, count: COMMANDS.length } };

const SESSION_INFO = { id: -7n, incarnation: 17, ttlMs: 2_000, remainingMs: 12.5, attributes: { host: 'a', '': 'b' } };
const SESSION_LOCK = {
  lock: { namespace: 'n', name: Buffer.from([0, 255]) },
  ownerId: 't',
  permits: 2,
  sinceMs: 0,
  depth: 1,
  position: 0,
};
const CONDITION = { heartbeatMs: 500, serverMisses: 4, holderMisses: 3 };
export const SESSION_QUERIES: readonly SessionQuery[] = [
  { type: 'sessions', after: 0x1234_5678_9abc_def0n, limit: 10, attributes: { host: 'a' } },
  { type: 'sessions', after: 0n, limit: 10, attributes: {}, owner: 'ada' },
  { type: 'session', id: -7n, incarnation: 17 },
];
export const SESSION_RESULTS: readonly SessionQueryResult[] = [
  { type: 'sessions', sessions: [SESSION_INFO, { ...SESSION_INFO, condition: CONDITION, owner: 'ada' }], next: -1n },
  { type: 'session', session: undefined, locks: [], more: false },
  { type: 'session', session: SESSION_INFO, locks: [{ ...SESSION_LOCK, mode: 'permits', version: 5 }], more: true },
  { type: 'session', session: SESSION_INFO, locks: [{ ...SESSION_LOCK, mode: 'upgrade', version: 0 }], more: false },
];

/** They give their entry a format of its own. */
export const TERMS_COMMANDS: readonly Command[] = [
  { type: 'leaseChange', id: 5n, incarnation: 17, number: 3, ttlMs: 2_000, condition: CONDITION },
  { type: 'leaseChange', id: 5n, incarnation: 17, number: 4, ttlMs: 9_000_000_000_000 },
  { type: 'leaseGrant', id: -1n, ttlMs: 2_000, attributes: { host: 'a' }, condition: CONDITION },
  { type: 'leaseGrant', id: -1n, ttlMs: 2_000, attributes: {}, owner: 'ada' },
];
