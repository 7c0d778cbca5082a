import type { Bytes } from '@remora/base';
import { decodeLockNews, encodeLockNews, type LockNews } from '@remora/lock';
import { asBool, asBytes, asCount, asFields, asList, asMs, asText, invalid } from '../internal/codec/check.ts';
import { decodeCommand, decodeCommandResult, encodeCommand, encodeCommandResult } from '../internal/codec/command.ts';
import { decodeHealthConditions, encodeHealthCondition } from '../internal/codec/health.ts';
import { decodeKvEvent, encodeKvEvent } from '../internal/codec/kv.ts';
import { decodeClusterView, encodeClusterView } from '../internal/codec/master.ts';
import { decodeQuery, decodeQueryResult, encodeQuery, encodeQueryResult } from '../internal/codec/query.ts';
import { asRequestId } from '../internal/codec/range.ts';
import type { Command, CommandResult, Query, QueryResult } from '../internal/command.ts';
import { CONDITIONS_OF_NODE_MAX, CONDITIONS_TOLD_MAX, type HealthCondition } from '../internal/health.ts';
import type { KvEvent } from '../internal/kv-types.ts';
import type { ClusterView } from '../internal/master-api.ts';
import type { Method } from '../rpc/rpc.ts';

/**
 * What clients may call over the Pipe: the SDK's protocol. It is RPC as between nodes (frames that carry all calls of
 * a loop turn), with these methods, over the stream of frames of `node/pipe-link.ts`. Public: a change that an older peer
 * would misread gets a new method name.
 */
export interface PipeCommand {
  readonly command: Command;
  /** Names the command: a retry, through whichever gateway, is applied once. 1 to 64 characters. */
  readonly requestId: string;
  /** The gateway answers by then. At most 60 s. */
  readonly timeoutMs: number;
  /**
   * Range time after which the command is refused; the client fixes it together with the request id, from the
   * `rangeTimeMs` of earlier replies, and repeats it in each retry. Absent: the gateway reckons it.
   */
  readonly deadlineMs?: number | undefined;
  /** For a blocking lock acquire: how long to wait in the queue; 0 as long as the session lives. */
  readonly waitMs?: number | undefined;
}

export interface PipeQuery {
  readonly query: Query;
  readonly timeoutMs: number;
}

export interface PipeReply<Result> {
  readonly result: Result;
  readonly revision: number;
  readonly raftTerm: number;
  /** The ranges' time when the gateway answered; undefined when it does not know it. */
  readonly rangeTimeMs: number | undefined;
  /** Of an acquire that had to wait: the place in the queue at which it joined, 1 for the next. */
  readonly queuedAt?: number | undefined;
}

export type PipeWatchRequest =
  | {
      readonly kind: 'create';
      readonly key: Bytes;
      readonly end?: Bytes;
      /** 0: from now on. */
      readonly startRevision: number;
      readonly noPut: boolean;
      readonly noDelete: boolean;
      readonly prevKv: boolean;
    }
  /** Asks for a message with the current revision even when there are no events. */
  | { readonly kind: 'progress' };

/** A watch ends by the stream's error; a start that is compacted away by `COMPACTED` with `compactRevision` in the details. */
export type PipeWatchMessage =
  | { readonly kind: 'created'; readonly revision: number }
  /** `revision`: nothing at or below it is still to come. */
  | { readonly kind: 'events'; readonly revision: number; readonly events: readonly KvEvent[] };

export interface PipeLockWatchRequest {
  readonly namespace: string;
  /** The name of one lock (`single`), or what the names of all begin with. */
  readonly name: Bytes;
  readonly single: boolean;
}

export const pipeCommand: Method<PipeCommand, PipeReply<CommandResult>> = {
  name: 'kv.command',
  callers: 'clients',
  encodeRequest: (r) => [r.requestId, r.timeoutMs, r.deadlineMs ?? null, r.waitMs ?? null, encodeCommand(r.command)],
  decodeRequest(raw) {
    const f = asFields(raw, 5, 'pipe command');
    return {
      requestId: asRequestId(f[0]),
      timeoutMs: asMs(f[1], 'timeoutMs'),
      deadlineMs: f[2] === null ? undefined : asMs(f[2], 'deadlineMs'),
      waitMs: f[3] === null ? undefined : asMs(f[3], 'waitMs'),
      command: decodeCommand(f[4]),
    };
  },
  encodeReply: (reply) => encodeReply(reply, encodeCommandResult),
  decodeReply: (raw) => decodeReply(raw, decodeCommandResult),
  changes: () => true,
};

export const pipeQuery: Method<PipeQuery, PipeReply<QueryResult>> = {
  name: 'kv.query',
  callers: 'clients',
  encodeRequest: (r) => [r.timeoutMs, encodeQuery(r.query)],
  decodeRequest(raw) {
    const f = asFields(raw, 2, 'pipe query');
    return { timeoutMs: asMs(f[0], 'timeoutMs'), query: decodeQuery(f[1]) };
  },
  encodeReply: (reply) => encodeReply(reply, encodeQueryResult),
  decodeReply: (raw) => decodeReply(raw, decodeQueryResult),
};

/** A stream: one watch. */
export const pipeWatch: Method<PipeWatchRequest, PipeWatchMessage> = {
  name: 'watch',
  callers: 'clients',
  encodeRequest(r) {
    if (r.kind === 'progress') return [1];
    const flags = (r.noPut ? 1 : 0) | (r.noDelete ? 2 : 0) | (r.prevKv ? 4 : 0);
    return [0, r.key, r.end ?? null, r.startRevision, flags];
  },
  decodeRequest(raw) {
    if (!Array.isArray(raw)) throw invalid('watch request');
    if (raw[0] === 1) return { kind: 'progress' };
    const f = asFields(raw, 5, 'watch create');
    const flags = asCount(f[4], 'watch flags');
    if (f[0] !== 0 || flags > 7) throw invalid('watch create');
    const create = {
      kind: 'create' as const,
      key: asBytes(f[1], 'watch key'),
      startRevision: asCount(f[3], 'startRevision'),
      noPut: (flags & 1) !== 0,
      noDelete: (flags & 2) !== 0,
      prevKv: (flags & 4) !== 0,
    };
    return f[2] === null ? create : { ...create, end: asBytes(f[2], 'watch end') };
  },
  encodeReply: (m) => (m.kind === 'created' ? [m.revision] : [m.revision, m.events.map(encodeKvEvent)]),
  decodeReply(raw) {
    if (!Array.isArray(raw) || raw.length < 1 || raw.length > 2) throw invalid('watch message');
    const revision = asCount(raw[0], 'watch revision');
    if (raw.length === 1) return { kind: 'created', revision };
    return { kind: 'events', revision, events: asList(raw[1], 'watch events', decodeKvEvent) };
  },
};

/** A stream: what happens to a lock, or to those whose names begin so. */
export const pipeLockWatch: Method<PipeLockWatchRequest, readonly LockNews[]> = {
  name: 'lock.watch',
  callers: 'clients',
  encodeRequest: (r) => [r.namespace, r.name, r.single],
  decodeRequest(raw) {
    const f = asFields(raw, 3, 'lock watch');
    return {
      namespace: asText(f[0], 'namespace'),
      name: asBytes(f[1], 'name'),
      single: asBool(f[2], 'single'),
    };
  },
  encodeReply: encodeLockNews,
  decodeReply: decodeLockNews,
};

/** Cluster membership and routes, as the gateway last heard of them. */
export const pipeView: Method<undefined, ClusterView> = {
  name: 'cluster.view',
  callers: 'clients',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: encodeClusterView,
  decodeReply: decodeClusterView,
};

/** Where else a client of this cluster may go. */
export interface PipeGateways {
  /** What gateways of this cluster have in common, for the hello (`PIPE_CLUSTER`); it does not tell the cluster's id. */
  readonly cluster: string;
  /** As the other gateways advertise themselves, `host:port`; at most `GATEWAYS_TOLD_MAX`. */
  readonly addresses: readonly string[];
}

export const GATEWAYS_TOLD_MAX = 64;
/** What is longer is no address. */
const ADDRESS_CHARACTERS_MAX = 300;

export const pipeGateways: Method<undefined, PipeGateways> = {
  name: 'gateways',
  callers: 'clients',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: ({ cluster, addresses }) => [cluster, [...addresses]],
  decodeReply(raw) {
    const f = asFields(raw, 2, 'gateways');
    const addresses = asList(f[1], 'gateways', (address) => asText(address, 'gateway'));
    if (addresses.length > GATEWAYS_TOLD_MAX || addresses.some(({ length }) => length > ADDRESS_CHARACTERS_MAX)) {
      throw invalid('gateways');
    }
    return { cluster: asText(f[0], 'cluster'), addresses };
  },
};

/** What is wrong with the cluster, and with the gateway's own node, the worst first. */
export const pipeConditions: Method<undefined, readonly HealthCondition[]> = {
  name: 'conditions',
  callers: 'clients',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: (conditions) => conditions.map(encodeHealthCondition),
  decodeReply: (raw) => decodeHealthConditions(raw, CONDITIONS_TOLD_MAX + CONDITIONS_OF_NODE_MAX),
};

function encodeReply<Result>(reply: PipeReply<Result>, encode: (result: Result) => unknown[]): unknown[] {
  const { revision, raftTerm, rangeTimeMs, queuedAt, result } = reply;
  const fields = [revision, raftTerm, rangeTimeMs ?? null, encode(result)];
  return queuedAt === undefined ? fields : [...fields, queuedAt];
}

function decodeReply<Result>(raw: unknown, decode: (raw: unknown) => Result): PipeReply<Result> {
  const isQueued = Array.isArray(raw) && raw.length === 5;
  const f = asFields(raw, isQueued ? 5 : 4, 'pipe reply');
  return {
    revision: asCount(f[0], 'revision'),
    raftTerm: asCount(f[1], 'raftTerm'),
    rangeTimeMs: f[2] === null ? undefined : asMs(f[2], 'rangeTimeMs'),
    result: decode(f[3]),
    queuedAt: isQueued ? asCount(f[4], 'queuedAt') : undefined,
  };
}
