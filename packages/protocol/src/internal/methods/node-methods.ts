import { method } from '../../rpc/method.ts';
import { bool, field, list, maybe, nothing, struct, text, uint } from '../../schema/kinds.ts';
import type { Infer } from '../../schema/shape.ts';
import { RangeDescriptor } from '../descriptor.ts';
import { LockNewsKind } from '../lock-kinds.ts';
import { ClusterView, JoinReply, JoinRequest, NodeHeartbeat, NodeHeartbeatReply } from '../master-api.ts';
import {
  AwaitLeaderRequest,
  LockWatchRequest,
  RangeInfo,
  RangeInfoRequest,
  RangeReply,
  RangeRequest,
  RemovedReplica,
  WatchMessage,
  WatchRequest,
} from '../range-api.ts';
import { DrawRevisionsReply, DrawRevisionsRequest } from '../revision-api.ts';
import { AskSplitReply, AskSplitRequest } from '../split-api.ts';
import { rareMethod } from './rare-method.ts';

export const rangeExecute = method('range.execute', {
  meaning: 'Executes a command or a query on a range; answered by its leader.',
  callers: 'nodes',
  request: RangeRequest,
  reply: RangeReply,
  changes: ({ body }) => body.kind === 'command',
});

export const rangeWatch = method('range.watch', {
  meaning: 'One stream per pair of nodes; it carries any number of watches, each under the id that the caller chose.',
  callers: 'nodes',
  request: WatchRequest,
  reply: WatchMessage,
  stream: true,
});

export const rangeLockWatch = method('range.lockWatch', {
  meaning: 'The events of the locks of one range.',
  callers: 'nodes',
  request: LockWatchRequest,
  reply: LockNewsKind,
  stream: true,
});

export const rangeInfo = rareMethod('range.info', {
  meaning: 'Reports who leads a range, and its time.',
  callers: 'nodes',
  request: RangeInfoRequest,
  reply: RangeInfo,
});

export const rangeAwaitLeader = rareMethod('range.awaitLeader', {
  meaning: 'The same, once the node that is asked leads the range, or knows where its keys went, or the time is over.',
  callers: 'nodes',
  request: AwaitLeaderRequest,
  reply: RangeInfo,
});

export const rangeCheckpoint = rareMethod('range.checkpoint', {
  meaning:
    'Writes what a replica of the range has in memory; answered when it is durable. It changes nothing but times.',
  callers: 'nodes',
  request: RangeInfoRequest,
  reply: nothing,
});

export const rangeRemoved = rareMethod('range.removed', {
  meaning: 'A member of a range tells a replica that it was removed: one that knows of a later membership stays.',
  callers: 'nodes',
  request: RemovedReplica,
  reply: nothing,
});

export const masterJoin = rareMethod('master.join', {
  meaning: 'A node asks for its id, or confirms itself.',
  callers: 'joiners',
  request: JoinRequest,
  reply: JoinReply,
});

export const masterHeartbeat = rareMethod('master.heartbeat', {
  meaning: 'A node reports its state, and receives its tasks.',
  callers: 'nodes',
  request: NodeHeartbeat,
  reply: NodeHeartbeatReply,
});

export const masterRangeChanged = rareMethod('master.rangeChanged', {
  meaning:
    'A replica reports that the membership or the bounds of its range changed; answered when the masters know it.',
  callers: 'nodes',
  request: RangeDescriptor,
  reply: nothing,
});

export const masterAskSplit = rareMethod('master.askSplit', {
  meaning:
    'Gives out the ids for a split; answered when they are replicated. STALE_EPOCH when the masters know a later epoch, RANGE_NOT_FOUND when the range has ended, UNAVAILABLE, saying why, when it should not be split now.',
  callers: 'nodes',
  request: AskSplitRequest,
  reply: AskSplitReply,
});

export const masterView = rareMethod('master.view', {
  meaning: 'Returns the whole cluster.',
  callers: 'joiners',
  request: nothing,
  reply: ClusterView,
});

export const masterDrawRevisions = rareMethod('master.drawRevisions', {
  meaning: 'Gives out blocks of revisions for ranges that the masters number; a node has one such request in flight.',
  callers: 'nodes',
  request: DrawRevisionsRequest,
  reply: DrawRevisionsReply,
});

/** The level of a node's log: `debug`, `info`, `warn` or `error`. */
const LogLevelChange = struct('log level', {
  level: field(text, 'The lowest level that is logged from now on; empty: it stays.'),
});
const LogLevelReply = struct('log levels', {
  level: field(text, 'The lowest level that is logged now.'),
  before: field(text, 'The level before.'),
});
export interface LogLevelReply extends Infer<typeof LogLevelReply> {}

export const nodeLogLevel = rareMethod('node.logLevel', {
  meaning: 'Changes the level of the log of the node that is asked, until it ends.',
  callers: 'nodes',
  request: LogLevelChange,
  reply: LogLevelReply,
});

const AuditRequest = struct('request for audit records', {
  before: field(uint, 'Only records with smaller numbers; 0: the newest.'),
  limit: field(uint, 'How many at most.'),
});
const AuditRecordKind = struct('audit record', {
  number: field(uint, 'Counts the records of the node since it started.'),
  timeMs: field(uint, 'Wall time of the node, in ms since 1970.'),
  principal: maybe(text, 'Who asked; absent: not known.'),
  method: field(text, 'How the caller has shown who it is.'),
  address: maybe(text, 'From where, without the port.'),
  door: maybe(text, 'By which interface.'),
  action: field(text, 'What was asked for.'),
  decision: field(text, '`allowed`, `denied` or `failed`.'),
  targets: field(list(text), 'What the action needed, or what it changed.'),
  reason: maybe(text, 'Why it was denied, or failed.'),
  requestId: maybe(text, 'The id of the request.'),
});
const AuditReply = struct('audit records', {
  isKept: field(bool, 'Whether the node keeps new records.'),
  records: field(list(AuditRecordKind), 'The newest first.'),
  more: field(bool, 'Whether the node keeps older ones.'),
});
export interface AuditReply extends Infer<typeof AuditReply> {}

export const nodeAudit = rareMethod('node.audit', {
  meaning: 'Returns the newest records of the audit log that the node has in memory.',
  callers: 'nodes',
  request: AuditRequest,
  reply: AuditReply,
});
