import { utf8 } from '@remora/base';
import type { LockId, Owner, PublicOwner } from '@remora/lock';
import type { CheckReport, NodesOverview, RangesOverview, SettingInfo } from '../admin-api.ts';
import type { Command } from '../command.ts';
import type { CommandResult } from '../command-result.ts';
import { type NodeDescriptor, publicNode, type RangeDescriptor } from '../descriptor.ts';
import { type HealthCondition, healthCondition } from '../health.ts';
import type { Compare, KeyValue, KvEvent, KvOp, RangeOp, Txn } from '../kv-types.ts';
import type { ClusterView, NodeHeartbeat, NodeTask, RangeInstruction, SplitPolicy } from '../master-api.ts';
import type { Query, QueryResult, RangeStatus } from '../query.ts';
import type { RangeReply, RangeRequest, WatchMessage, WatchRequest } from '../range-api.ts';
import type { DrawRevisionsReply, DrawRevisionsRequest } from '../revision-api.ts';
import type { SessionQuery, SessionQueryResult } from '../session-api.ts';
import type { CommandBatch } from './entry.ts';

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

export const QUERY_RESULTS: readonly QueryResult[] = [
  { type: 'range', kvs: [], more: false, count: 0 },
  { type: 'leaseKeepAlive', id: LEASE, incarnation: 4, ttlMs: -1 },
  {
    type: 'leaseTimeToLive',
    lease: {
      id: LEASE,
      incarnation: 4,
      grantedTtlMs: 9,
      remainingMs: -1,
      keys: [key],
      attributes: { a: 'b' },
      endsEmpty: false,
    },
  },
  {
    type: 'leaseTimeToLive',
    lease: {
      id: LEASE,
      incarnation: 4,
      grantedTtlMs: 9,
      remainingMs: -1,
      keys: [key],
      attributes: { a: 'b' },
      endsEmpty: true,
    },
  },
  { type: 'leases', ids: [1n, LEASE] },
  { type: 'lock', result: { type: 'check', current: [true, false] } },
  { type: 'lock', result: { type: 'show', state: undefined } },
  { type: 'lockAwait', result: { type: 'queued', position: 1 } },
  { type: 'grantEnd', sessionAlive: true },
  {
    type: 'grantAsked',
    revocation: { revision: 20, version: 21, by: 'ops', reason: 'r', untilMs: 5_000.5, sinceMs: 1_000 },
  },
  { type: 'closedRevision', closed: 77, floor: 12 },
  { type: 'scan', kvs: [kv], next: utf8('orders/43') },
  { type: 'scan', kvs: [], next: undefined },
  {
    type: 'status',
    status: {
      rangeId: 2,
      leaderNode: 1,
      term: 3,
      commit: 4,
      applied: 5,
      revision: 6,
      compactRevision: 0,
      bytes: 7,
      keys: 8,
      leases: 9,
      watches: 10,
      replicas: [{ replicaId: 1, nodeId: 1, match: 4, commit: 3, state: 'replicate' }],
    },
  },
];

export const EVENTS: readonly KvEvent[] = [
  { type: 'put', kv },
  { type: 'delete', kv, prev: kv },
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

const PUBLIC_NODE = publicNode(NODE);

export const VIEW: ClusterView = {
  clusterId: 'c',
  nodes: [{ descriptor: PUBLIC_NODE, state: 'draining' }],
  ranges: [RANGE],
  leaders: [[2, 1]],
  masterLeader: 1,
};

const report = { rangeId: 2, replicaId: 1, epoch: RANGE.epoch, term: 3, applied: 44, bytes: 5 };
const peer = { lagEntries: 3, lagBytes: 700, caughtUp: true, silentMs: 0 };

export const HEALTH: readonly HealthCondition[] = [
  healthCondition('hole', { rangeId: 2 }, 'nobody has the keys from a to b'),
  healthCondition('diskReserve', { nodeId: 3 }, 'the disk is full'),
  healthCondition('noMasters', {}, 'nobody leads the masters'),
];

export const HEARTBEAT: NodeHeartbeat = {
  nodeId: 1,
  incarnation: 'abc',
  space: { capacityBytes: 2 ** 40, availableBytes: 7 },
  labels: { zone: 'a' },
  hasMaster: true,
  ranges: [
    {
      ...{ ...report, silent: false },
      lead: {
        ...{ keys: 9, logEntries: 40, joint: false, changePending: true },
        ...{ readsPerS: 12.5, readBytesPerS: 4_000, writesPerS: 3, writeBytesPerS: 0.5 },
        sizeRemark: 'it is too large',
        peers: [
          { replicaId: 2, state: 'replicate', match: 41, ...peer },
          { replicaId: 3, state: 'probe', match: 0, ...peer, caughtUp: false, silentMs: 1_234.5 },
          { replicaId: 4, state: 'snapshot', match: 7, ...peer },
        ],
      },
    },
    { ...report, rangeId: 7, replicaId: 9, silent: true, lead: undefined },
  ],
  results: [
    { orderId: 5, outcome: 'done', reason: '' },
    { orderId: 6, outcome: 'underWay', reason: 'it has not caught up' },
    { orderId: 7, outcome: 'refused', reason: 'there is no such replica' },
  ],
  conditions: [healthCondition('diskReserve', { nodeId: 1 }, 'the disk is full')],
};

const INSTRUCTIONS: readonly RangeInstruction[] = [
  { type: 'addLearner', nodeId: 4, replicaId: 17 },
  { type: 'changeVoters', promote: [17], remove: [2, 3] },
  { type: 'demote', replicaId: 2 },
  { type: 'leaveJoint' },
  { type: 'transferLeader', replicaId: 17 },
  { type: 'split', at: undefined },
  { type: 'split', at: utf8('g') },
  { type: 'merge', source: RANGE, bytesMax: 64 },
];

export const TASKS: readonly NodeTask[] = [
  { type: 'createReplica', descriptor: RANGE, replicaId: 5 },
  { type: 'removeReplica', rangeId: 2, replicaId: 5, confVersion: 8 },
  ...INSTRUCTIONS.map((instruction, i) => ({
    type: 'order' as const,
    order: { orderId: 30 + i, rangeId: 2, confVersion: 4, instruction },
  })),
  { type: 'becomeMaster' },
  { type: 'ceaseMaster' },
];

export const SPLITS: SplitPolicy = {
  automatic: true,
  sizes: { checkBytes: 10, splitBytes: 20, maxBytes: 40 },
  loads: { requestsPerS: 50, bytesPerS: 60, holdMs: 70.5 },
};

export const REQUESTS: readonly RangeRequest[] = [
  ...COMMANDS.map((command) => ({
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    requestId: 'r-1',
    deadlineMs: 1_000.25,
    body: { kind: 'command' as const, command },
  })),
  ...QUERIES.map((query) => ({
    rangeId: 2,
    epoch: { confVersion: 1, version: 1 },
    requestId: '',
    deadlineMs: 0,
    body: { kind: 'query' as const, query, notBefore: 7 },
  })),
];

export const REPLIES: readonly RangeReply[] = [...COMMAND_RESULTS, ...QUERY_RESULTS].map((result) => ({
  revision: 10,
  raftTerm: 2,
  rangeTimeMs: 55.5,
  result,
}));

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

export const WATCH_MESSAGES: readonly WatchMessage[] = [
  { kind: 'created', watchId: 1, revision: 4 },
  { kind: 'events', watchId: 1, revision: 9, events: EVENTS },
  { kind: 'progress', watchId: 1, revision: 12, question: 7 },
  { kind: 'ended', watchId: 1, code: 'COMPACTED', message: 'gone', compactRevision: 3 },
  { kind: 'ended', watchId: 1, code: 'STALE_EPOCH', message: 'split', compactRevision: 0, ranges: [RANGE] },
];

export const BATCH: CommandBatch = {
  rangeTimeMs: 123.5,
  wallMs: 1_700_000_000_000,
  epoch: { confVersion: 1, version: 2 },
  commands: COMMANDS.map((command, i) => ({ requestId: `request-${i}`, deadlineMs: 1_000 + i, command })),
};

export const DRAWS: DrawRevisionsRequest = {
  floor: 2 ** 52,
  draws: [
    { rangeId: 2, count: 1 },
    { rangeId: 3, count: 65_536 },
  ],
};

export const DRAWN: DrawRevisionsReply = {
  newest: 300,
  blocks: [
    { rangeId: 2, first: 299, count: 1 },
    { rangeId: 3, first: 300, count: 1 },
  ],
};

export const BLOCK_BATCH: CommandBatch = { ...BATCH, block: { first: 300, count: COMMANDS.length } };

export const NODES: NodesOverview = {
  clusterId: 'c',
  masterLeader: 1,
  leadingMs: 12_345.5,
  nodes: [
    {
      ...{
        descriptor: PUBLIC_NODE,
        state: 'up',
        duty: 'maintenance',
        maintenanceLeftMs: 1_234.5,
        labels: { zone: 'a' },
      },
      ...{ space: HEARTBEAT.space, silentMs: 12.5, replicas: 3, leaders: 1, bytes: 4_096, isMaster: true },
    },
    {
      ...{
        descriptor: { ...PUBLIC_NODE, nodeId: 2 },
        state: 'suspect',
        duty: 'serving',
        maintenanceLeftMs: 0,
        labels: {},
      },
      ...{
        space: { capacityBytes: 0, availableBytes: 0 },
        silentMs: -1,
        replicas: 0,
        leaders: 0,
        bytes: 0,
        isMaster: false,
      },
    },
  ],
};

export const RANGES: RangesOverview = {
  ranges: [
    {
      descriptor: RANGE,
      leaderNode: 1,
      reports: HEARTBEAT.ranges.map((report) => ({ nodeId: 1, silentMs: 3, report })),
    },
  ],
  more: true,
};

export const CHECKED: CheckReport = {
  nodes: 3,
  ranges: 2,
  conditions: HEALTH,
};

export const SETTINGS: readonly SettingInfo[] = [
  { name: 'down-after', value: '5m', defaultValue: '10m', placeholder: '<duration>', description: 'Silence.' },
];

export const STATUS: RangeStatus = {
  rangeId: 2,
  leaderNode: 1,
  term: 3,
  commit: 9,
  applied: 8,
  revision: 7,
  compactRevision: 6,
  bytes: 5,
  keys: 4,
  leases: 3,
  watches: 2,
  replicas: [{ replicaId: 1, nodeId: 1, match: 9, commit: 9, state: 'leader' }],
};

const SESSION_INFO = { id: -7n, incarnation: 17, ttlMs: 2_000, remainingMs: 12.5, attributes: { host: 'a', '': 'b' } };
const SESSION_LOCK = {
  lock: { namespace: 'n', name: Buffer.from([0, 255]) },
  ownerId: 't',
  permits: 2,
  depth: 1,
  position: 0,
};
const CONDITION = { heartbeatMs: 500, serverMisses: 4, holderMisses: 3 };
export const SESSION_QUERIES: readonly SessionQuery[] = [
  { type: 'sessions', after: 0x1234_5678_9abc_def0n, limit: 10, attributes: { host: 'a' } },
  { type: 'session', id: -7n, incarnation: 17 },
];
export const SESSION_RESULTS: readonly SessionQueryResult[] = [
  { type: 'sessions', sessions: [SESSION_INFO, { ...SESSION_INFO, condition: CONDITION }], next: -1n },
  { type: 'session', session: undefined, locks: [], more: false },
  { type: 'session', session: SESSION_INFO, locks: [{ ...SESSION_LOCK, mode: 'permits', version: 5 }], more: true },
  { type: 'session', session: SESSION_INFO, locks: [{ ...SESSION_LOCK, mode: 'upgrade', version: 0 }], more: false },
];

/** They give their entry a format of its own. */
export const TERMS_COMMANDS: readonly Command[] = [
  { type: 'leaseChange', id: 5n, incarnation: 17, number: 3, ttlMs: 2_000, condition: CONDITION },
  { type: 'leaseChange', id: 5n, incarnation: 17, number: 4, ttlMs: 9_000_000_000_000 },
  { type: 'leaseGrant', id: -1n, ttlMs: 2_000, attributes: { host: 'a' }, condition: CONDITION },
];
export const TERMS_RESULTS: readonly CommandResult[] = [{ type: 'leaseChange', ttlMs: 2_000 }];
