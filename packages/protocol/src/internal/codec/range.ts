import { unreachable } from '@remora/base';
import type { CommandResult, QueryResult } from '../command.ts';
import type {
  AwaitLeaderRequest,
  LockWatchRequest,
  RangeInfo,
  RangeInfoRequest,
  RangeReply,
  RangeRequest,
  RemovedReplica,
  WatchCreate,
  WatchMessage,
  WatchRequest,
} from '../range-api.ts';
import { asBool, asBytes, asCount, asFields, asList, asMs, asText, invalid } from './check.ts';
import { decodeCommand, decodeCommandResult, encodeCommand, encodeCommandResult } from './command.ts';
import { decodeRangeDescriptor, encodeRangeDescriptor } from './descriptor.ts';
import { decodeKvEvent, encodeKvEvent } from './kv.ts';
import { decodeQuery, decodeQueryResult, encodeQuery, encodeQueryResult } from './query.ts';

/** Longest request id, in characters. */
export const REQUEST_ID_LENGTH_MAX = 64;

export function asRequestId(raw: unknown): string {
  const id = asText(raw, 'request id');
  if (id.length > REQUEST_ID_LENGTH_MAX) throw invalid('request id');
  return id;
}

/** Commands come by the hundred thousand: they do without the field that only queries have. */
export function encodeRangeRequest({ rangeId, epoch, requestId, deadlineMs, body }: RangeRequest): unknown[] {
  const { confVersion, version } = epoch;
  return body.kind === 'command'
    ? [rangeId, confVersion, version, requestId, deadlineMs, encodeCommand(body.command), 0]
    : [rangeId, confVersion, version, requestId, deadlineMs, encodeQuery(body.query), 1, body.notBefore];
}

export function decodeRangeRequest(raw: unknown): RangeRequest {
  const kind = asKind(Array.isArray(raw) ? raw[6] : undefined);
  const f = asFields(raw, kind === 'command' ? 7 : 8, 'range request');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    epoch: { confVersion: asCount(f[1], 'epoch.confVersion'), version: asCount(f[2], 'epoch.version') },
    requestId: asRequestId(f[3]),
    deadlineMs: asMs(f[4], 'deadlineMs'),
    body:
      kind === 'command'
        ? { kind, command: decodeCommand(f[5]) }
        : { kind, query: decodeQuery(f[5]), notBefore: asCount(f[7], 'notBefore') },
  };
}

function asKind(raw: unknown): 'command' | 'query' {
  if (raw === 0) return 'command';
  if (raw === 1) return 'query';
  throw invalid('request kind');
}

/** A reply does not say what it answers: results that only a query has are told by their type, all others go as a command's. */
export function encodeResult(result: CommandResult | QueryResult): unknown[] {
  switch (result.type) {
    case 'leaseKeepAlive':
    case 'leaseTimeToLive':
    case 'leaseKeys':
    case 'leases':
    case 'sessions':
    case 'session':
    case 'lockAwait':
    case 'grantEnd':
    case 'grantAsked':
    case 'closedRevision':
    case 'scan':
    case 'txnStatus':
    case 'status':
      return encodeQueryResult(result);
    case 'lock':
      return isLockQueryResult(result) ? encodeQueryResult(result) : encodeCommandResult(result);
    default:
      return encodeCommandResult(result);
  }
}

type LockAnswer = Extract<CommandResult | QueryResult, { type: 'lock' }>;

function isLockQueryResult(result: LockAnswer): result is Extract<QueryResult, { type: 'lock' }> {
  const { type } = result.result;
  return type === 'show' || type === 'list' || type === 'check';
}

/** Query tags begin at 32; see `command.ts`. */
export function decodeResult(raw: unknown): CommandResult | QueryResult {
  if (!Array.isArray(raw)) throw invalid('result');
  return asCount(raw[0], 'result tag') >= 32 ? decodeQueryResult(raw) : decodeCommandResult(raw);
}

export function encodeRangeReply(reply: RangeReply): unknown[] {
  return [reply.revision, reply.raftTerm, reply.rangeTimeMs, encodeResult(reply.result)];
}

export function decodeRangeReply(raw: unknown): RangeReply {
  const f = asFields(raw, 4, 'range reply');
  return {
    revision: asCount(f[0], 'revision'),
    raftTerm: asCount(f[1], 'raftTerm'),
    rangeTimeMs: asMs(f[2], 'rangeTimeMs'),
    result: decodeResult(f[3]),
  };
}

const WATCH = { create: 0, cancel: 1, progress: 2 } as const;

export function encodeWatchRequest(request: WatchRequest): unknown[] {
  switch (request.kind) {
    case 'create':
      return [
        WATCH.create,
        request.watchId,
        request.rangeId,
        request.epoch.confVersion,
        request.epoch.version,
        request.span.start,
        request.span.end,
        request.startRevision,
        (request.noPut ? 1 : 0) | (request.noDelete ? 2 : 0) | (request.prevKv ? 4 : 0),
      ];
    case 'cancel':
      return [WATCH.cancel, request.watchId];
    case 'progress':
      return [WATCH.progress, request.question];
    default:
      return unreachable(request);
  }
}

export function decodeWatchRequest(raw: unknown): WatchRequest {
  if (!Array.isArray(raw)) throw invalid('watch request');
  switch (raw[0]) {
    case WATCH.create:
      return decodeWatchCreate(asFields(raw, 9, 'watch create'));
    case WATCH.cancel:
      return { kind: 'cancel', watchId: asCount(asFields(raw, 2, 'watch cancel')[1], 'watchId') };
    case WATCH.progress:
      return { kind: 'progress', question: asCount(asFields(raw, 2, 'watch progress')[1], 'question') };
    default:
      throw invalid('watch request tag');
  }
}

function decodeWatchCreate(f: readonly unknown[]): WatchCreate {
  const flags = asCount(f[8], 'watch flags');
  if (flags > 7) throw invalid('watch flags');
  return {
    kind: 'create',
    watchId: asCount(f[1], 'watchId'),
    rangeId: asCount(f[2], 'rangeId'),
    epoch: { confVersion: asCount(f[3], 'epoch.confVersion'), version: asCount(f[4], 'epoch.version') },
    span: { start: asBytes(f[5], 'span.start'), end: asBytes(f[6], 'span.end') },
    startRevision: asCount(f[7], 'startRevision'),
    noPut: (flags & 1) !== 0,
    noDelete: (flags & 2) !== 0,
    prevKv: (flags & 4) !== 0,
  };
}

const WATCH_MESSAGE = { created: 0, events: 1, ended: 2, progress: 3 } as const;

export function encodeWatchMessage(message: WatchMessage): unknown[] {
  switch (message.kind) {
    case 'events':
      return [WATCH_MESSAGE.events, message.watchId, message.revision, message.events.map(encodeKvEvent)];
    case 'created':
      return [WATCH_MESSAGE.created, message.watchId, message.revision];
    case 'progress':
      return [WATCH_MESSAGE.progress, message.watchId, message.revision, message.question];
    case 'ended':
      return encodeWatchEnded(message);
    default:
      return unreachable(message);
  }
}

export function decodeWatchMessage(raw: unknown): WatchMessage {
  if (!Array.isArray(raw)) throw invalid('watch message');
  switch (raw[0]) {
    case WATCH_MESSAGE.events: {
      const f = asFields(raw, 4, 'watch events');
      return {
        kind: 'events',
        watchId: asCount(f[1], 'watchId'),
        revision: asCount(f[2], 'revision'),
        events: asList(f[3], 'events', decodeKvEvent),
      };
    }
    case WATCH_MESSAGE.created: {
      const f = asFields(raw, 3, 'watch created');
      return { kind: 'created', watchId: asCount(f[1], 'watchId'), revision: asCount(f[2], 'revision') };
    }
    case WATCH_MESSAGE.progress: {
      const f = asFields(raw, 4, 'watch progress');
      return {
        kind: 'progress',
        watchId: asCount(f[1], 'watchId'),
        revision: asCount(f[2], 'revision'),
        question: asCount(f[3], 'question'),
      };
    }
    case WATCH_MESSAGE.ended:
      return decodeWatchEnded(raw);
    default:
      throw invalid('watch message tag');
  }
}

type WatchEnded = Extract<WatchMessage, { kind: 'ended' }>;

function encodeWatchEnded({ watchId, code, message, compactRevision, ranges }: WatchEnded): unknown[] {
  const ended = [WATCH_MESSAGE.ended, watchId, code, message, compactRevision];
  return ranges === undefined ? ended : [...ended, ranges.map(encodeRangeDescriptor)];
}

function decodeWatchEnded(raw: readonly unknown[]): WatchEnded {
  const brings = raw.length > 5;
  const f = asFields(raw, brings ? 6 : 5, 'watch ended');
  return {
    kind: 'ended',
    watchId: asCount(f[1], 'watchId'),
    code: asText(f[2], 'code'),
    message: asText(f[3], 'message'),
    compactRevision: asCount(f[4], 'compactRevision'),
    ...(brings && { ranges: asList(f[5], 'current ranges', decodeRangeDescriptor) }),
  };
}

export function encodeLockWatch({ rangeId, epoch, namespace, name, single, span }: LockWatchRequest): unknown[] {
  return [rangeId, epoch.confVersion, epoch.version, namespace, name, single, span.start, span.end];
}

export function decodeLockWatch(raw: unknown): LockWatchRequest {
  const f = asFields(raw, 8, 'lock watch');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    epoch: { confVersion: asCount(f[1], 'epoch.confVersion'), version: asCount(f[2], 'epoch.version') },
    namespace: asText(f[3], 'namespace'),
    name: asBytes(f[4], 'name'),
    single: asBool(f[5], 'single'),
    span: { start: asBytes(f[6], 'span.start'), end: asBytes(f[7], 'span.end') },
  };
}

export function encodeRangeInfoRequest(request: RangeInfoRequest): unknown[] {
  return [request.rangeId];
}

export function decodeRangeInfoRequest(raw: unknown): RangeInfoRequest {
  return { rangeId: asCount(asFields(raw, 1, 'range info request')[0], 'rangeId') };
}

export function encodeAwaitLeader({ rangeId, waitMs }: AwaitLeaderRequest): unknown[] {
  return [rangeId, waitMs];
}

export function decodeAwaitLeader(raw: unknown): AwaitLeaderRequest {
  const f = asFields(raw, 2, 'wait for a leader');
  return { rangeId: asCount(f[0], 'rangeId'), waitMs: asMs(f[1], 'waitMs') };
}

export function encodeRangeInfo(info: RangeInfo): unknown[] {
  return [info.rangeId, info.leaderNode, info.rangeTimeMs, info.revision, info.term];
}

export function decodeRangeInfo(raw: unknown): RangeInfo {
  const f = asFields(raw, 5, 'range info');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    leaderNode: asCount(f[1], 'leaderNode'),
    rangeTimeMs: asMs(f[2], 'rangeTimeMs'),
    revision: asCount(f[3], 'revision'),
    term: asCount(f[4], 'term'),
  };
}

export function encodeRemovedReplica({ rangeId, replicaId, confVersion }: RemovedReplica): unknown[] {
  return [rangeId, replicaId, confVersion];
}

export function decodeRemovedReplica(raw: unknown): RemovedReplica {
  const f = asFields(raw, 3, 'removed replica');
  return {
    rangeId: asCount(f[0], 'rangeId'),
    replicaId: asCount(f[1], 'replicaId'),
    confVersion: asCount(f[2], 'confVersion'),
  };
}
