import { decodeLockNews, encodeLockNews, type LockNews } from '@remora/lock';
import type { Method } from '../rpc/rpc.ts';
import { decodeAskSplit, decodeAskSplitReply, encodeAskSplit, encodeAskSplitReply } from './codec/ask-split.ts';
import { decodeRangeDescriptor, encodeRangeDescriptor } from './codec/descriptor.ts';
import {
  decodeClusterView,
  decodeJoinReply,
  decodeJoinRequest,
  decodeNodeHeartbeat,
  decodeNodeHeartbeatReply,
  encodeClusterView,
  encodeJoinReply,
  encodeJoinRequest,
  encodeNodeHeartbeat,
  encodeNodeHeartbeatReply,
} from './codec/master.ts';
import {
  decodeAwaitLeader,
  decodeLockWatch,
  decodeRangeInfo,
  decodeRangeInfoRequest,
  decodeRangeReply,
  decodeRangeRequest,
  decodeRemovedReplica,
  decodeWatchMessage,
  decodeWatchRequest,
  encodeAwaitLeader,
  encodeLockWatch,
  encodeRangeInfo,
  encodeRangeInfoRequest,
  encodeRangeReply,
  encodeRangeRequest,
  encodeRemovedReplica,
  encodeWatchMessage,
  encodeWatchRequest,
} from './codec/range.ts';
import { decodeDrawReply, decodeDrawRequest, encodeDrawReply, encodeDrawRequest } from './codec/revisions.ts';
import type { RangeDescriptor } from './descriptor.ts';
import type { ClusterView, JoinReply, JoinRequest, NodeHeartbeat, NodeHeartbeatReply } from './master-api.ts';
import type {
  AwaitLeaderRequest,
  LockWatchRequest,
  RangeInfo,
  RangeInfoRequest,
  RangeReply,
  RangeRequest,
  RemovedReplica,
  WatchMessage,
  WatchRequest,
} from './range-api.ts';
import type { DrawRevisionsReply, DrawRevisionsRequest } from './revision-api.ts';
import type { AskSplitReply, AskSplitRequest } from './split-api.ts';

/** Executes a command or a query on a range; answered by its leader. */
export const rangeExecute: Method<RangeRequest, RangeReply> = {
  name: 'range.execute',
  callers: 'nodes',
  encodeRequest: encodeRangeRequest,
  decodeRequest: decodeRangeRequest,
  encodeReply: encodeRangeReply,
  decodeReply: decodeRangeReply,
  changes: ({ body }) => body.kind === 'command',
};

/** One stream per pair of nodes; it carries any number of watches, each under the id that the caller chose. */
export const rangeWatch: Method<WatchRequest, WatchMessage> = {
  name: 'range.watch',
  callers: 'nodes',
  encodeRequest: encodeWatchRequest,
  decodeRequest: decodeWatchRequest,
  encodeReply: encodeWatchMessage,
  decodeReply: decodeWatchMessage,
};

/** A stream: what happens to locks of one range. */
export const rangeLockWatch: Method<LockWatchRequest, readonly LockNews[]> = {
  name: 'range.lockWatch',
  callers: 'nodes',
  encodeRequest: encodeLockWatch,
  decodeRequest: decodeLockWatch,
  encodeReply: encodeLockNews,
  decodeReply: decodeLockNews,
};

export const rangeInfo: Method<RangeInfoRequest, RangeInfo> = {
  name: 'range.info',
  callers: 'nodes',
  encodeRequest: encodeRangeInfoRequest,
  decodeRequest: decodeRangeInfoRequest,
  encodeReply: encodeRangeInfo,
  decodeReply: decodeRangeInfo,
};

/** Answered as `range.info`, once the node that is asked leads the range or knows where its keys went, or the time is over. */
export const rangeAwaitLeader: Method<AwaitLeaderRequest, RangeInfo> = {
  name: 'range.awaitLeader',
  callers: 'nodes',
  encodeRequest: encodeAwaitLeader,
  decodeRequest: decodeAwaitLeader,
  encodeReply: encodeRangeInfo,
  decodeReply: decodeRangeInfo,
};

/** A node of a range writes what waits in its memory; answered when that is durable. It changes nothing but times. */
export const rangeCheckpoint: Method<RangeInfoRequest, undefined> = {
  name: 'range.checkpoint',
  callers: 'nodes',
  encodeRequest: encodeRangeInfoRequest,
  decodeRequest: decodeRangeInfoRequest,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/** A member of a range tells a replica that it was removed: one that knows of a later membership stays. */
export const rangeRemoved: Method<RemovedReplica, undefined> = {
  name: 'range.removed',
  callers: 'nodes',
  encodeRequest: encodeRemovedReplica,
  decodeRequest: decodeRemovedReplica,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

export const masterJoin: Method<JoinRequest, JoinReply> = {
  name: 'master.join',
  callers: 'joiners',
  encodeRequest: encodeJoinRequest,
  decodeRequest: decodeJoinRequest,
  encodeReply: encodeJoinReply,
  decodeReply: decodeJoinReply,
};

export const masterHeartbeat: Method<NodeHeartbeat, NodeHeartbeatReply> = {
  name: 'master.heartbeat',
  callers: 'nodes',
  encodeRequest: encodeNodeHeartbeat,
  decodeRequest: decodeNodeHeartbeat,
  encodeReply: encodeNodeHeartbeatReply,
  decodeReply: decodeNodeHeartbeatReply,
};

/** A replica of a range says that the range has changed: its membership, or its bounds. Answered when the master knows it. */
export const masterRangeChanged: Method<RangeDescriptor, undefined> = {
  name: 'master.rangeChanged',
  callers: 'nodes',
  encodeRequest: encodeRangeDescriptor,
  decodeRequest: decodeRangeDescriptor,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/**
 * Answered when the ids are replicated. Refused with `STALE_EPOCH` when the master knows a later epoch, with
 * `RANGE_NOT_FOUND` when the range has ended, and with `UNAVAILABLE`, saying why, when it is not to be split now.
 */
export const masterAskSplit: Method<AskSplitRequest, AskSplitReply> = {
  name: 'master.askSplit',
  callers: 'nodes',
  encodeRequest: encodeAskSplit,
  decodeRequest: decodeAskSplit,
  encodeReply: encodeAskSplitReply,
  decodeReply: decodeAskSplitReply,
};

/** The request says nothing: whoever asks wants everything. */
export const masterView: Method<undefined, ClusterView> = {
  name: 'master.view',
  callers: 'joiners',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: encodeClusterView,
  decodeReply: decodeClusterView,
};

/** Blocks of revisions for ranges that the master numbers; one request of a node is under way at a time. */
export const masterDrawRevisions: Method<DrawRevisionsRequest, DrawRevisionsReply> = {
  name: 'master.drawRevisions',
  callers: 'nodes',
  encodeRequest: encodeDrawRequest,
  decodeRequest: decodeDrawRequest,
  encodeReply: encodeDrawReply,
  decodeReply: decodeDrawReply,
};
