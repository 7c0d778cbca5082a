import type { Bytes } from '@remora/base';
import type { LockQueryResult } from '@remora/lock';
import {
  added,
  bool,
  bytes,
  choice,
  field,
  flags,
  flat,
  list,
  maybe,
  ms,
  sealed,
  spread,
  struct,
  text,
  textOf,
  uint,
  union,
  unionWith,
  variant,
} from '../schema/kinds.ts';
import type { Infer, Kind } from '../schema/shape.ts';
import { Command } from './command.ts';
import { COMMAND_RESULTS, type CommandResult, KV_RESULTS } from './command-result.ts';
import { Epoch, RangeDescriptor } from './descriptor.ts';
import { KvEvent } from './kv-types.ts';
import { SpanKind } from './lease-api.ts';
import { LOCK_QUERY_RESULT, QUERY_RESULTS, Query, type QueryResult } from './query.ts';

/** Longest request id, in characters. */
export const REQUEST_ID_LENGTH_MAX = 64;
export const RequestId = textOf({ max: REQUEST_ID_LENGTH_MAX });
/** Longest time that a command may have before its deadline, as reckoned by the range that applies it. */
export const COMMAND_DEADLINE_MAX_MS = 120_000;

export type RoutingKey = Bytes;

/** Where a request goes and what identifies it. */
export const RangeRequest = struct('range request', {
  rangeId: field(uint, 'The range.'),
  epoch: flat(Epoch, 'Its epoch, as the caller knows it.'),
  requestId: field(
    RequestId,
    'A command is applied once per request id, however often it is sent (design §7). Empty for queries.',
  ),
  deadlineMs: field(
    ms,
    'Range time in milliseconds after which apply refuses the command; fixed by the gateway when the request begins and the same in each retry. 0 for queries.',
  ),
  body: field(
    union('body of a range request', 'kind', {
      command: variant(0, { command: field(sealed(Command), 'The command. Unknown fields are refused.') }),
      query: variant(1, {
        query: field(sealed(Query), 'The query. Unknown fields are refused.'),
        notBefore: field(
          uint,
          'A revision that was allocated before the gateway sent the query, or 0. The answer shows every change up to it, and its revision is at least as high. Only gateways set it.',
        ),
      }),
      /** Asks for the outcome of a command that its client may not send any more, without executing it. */
      recall: variant(2, { command: field(sealed(Command), 'The command. Unknown fields are refused.') }),
    }),
    'The command or the query.',
  ),
  authRevision: field(
    uint,
    'The revision of users and roles by which a gateway has allowed it; 0: the cluster itself asks. A leader that knows a newer one sends it back (`STALE_AUTH`).',
  ),
});
export interface RangeRequest extends Infer<typeof RangeRequest> {}

type LockAnswer = Extract<CommandResult | QueryResult, { readonly type: 'lock' }>;

/** Of the results of locks, those that answer a query. */
const OF_LOCK_QUERIES: Readonly<Record<LockQueryResult['type'], true>> = {
  ...{ show: true, list: true, check: true, search: true, namespaces: true },
};

function isLockQueryResult({ result }: LockAnswer): boolean {
  return Object.hasOwn(OF_LOCK_QUERIES, result.type);
}

/** Below are the tags of commands' results. */
const QUERY_TAG_MIN = 32;

/**
 * A reply does not name the request that it answers. Results that only a query has are recognized by their tag; all
 * others have the form of a command's.
 */
export const Result: Kind<CommandResult | QueryResult> = choice(
  unionWith('result', 'type', { ...COMMAND_RESULTS, ...QUERY_RESULTS, lock: COMMAND_RESULTS.lock }, KV_RESULTS),
  union('result of another query', 'type', { ...QUERY_RESULTS, lock: LOCK_QUERY_RESULT }),
  {
    ofValue: (result) => (result.type === 'lock' && isLockQueryResult(result) ? 1 : 0),
    ofRaw: ([tag]) => (typeof tag === 'number' && tag >= QUERY_TAG_MIN ? 1 : 0),
  },
) as Kind<CommandResult | QueryResult>;

/**
 * Every reply of a range. An acquire that joined a queue is answered `queued` at once; `lockAwait` waits for the rest.
 */
export const RangeReply = struct('range reply', {
  revision: field(uint, 'The last revision of the range, or of the cluster.'),
  raftTerm: field(uint, 'The term of the replica.'),
  rangeTimeMs: field(
    ms,
    'The time of the range when it answered: gateways reckon deadlines from it. 0 from a replica that does not lead, which knows no time.',
  ),
  result: field(Result, 'The result.'),
});
export interface RangeReply extends Infer<typeof RangeReply> {}

/** The selection of events that a watch reports. */
export const WATCH_FLAGS = spread(
  flags(['noPut', 'noDelete', 'prevKv']),
  'Leaves out puts; leaves out deletes; adds the pairs before the changes.',
);

const WATCH_ID = field(uint, 'The watch, under the id that the caller chose.');

/** One stream per pair of nodes carries any number of watches. */
export const WatchRequest = union('watch request', 'kind', {
  create: variant(0, {
    watchId: WATCH_ID,
    rangeId: field(uint, 'The range.'),
    epoch: flat(Epoch, 'Its epoch, as the caller knows it.'),
    span: flat(SpanKind, 'The keys.'),
    startRevision: field(uint, 'First revision to report; 0: from now on, and `created` says which.'),
    flags: WATCH_FLAGS,
  }),
  cancel: variant(1, { watchId: WATCH_ID }),
  /** Asks every watch of the stream how far it is. */
  progress: variant(2, { question: field(uint, 'Grows with each request of a stream.') }),
});
export type WatchRequest = Infer<typeof WatchRequest>;
export type WatchCreate = Extract<WatchRequest, { readonly kind: 'create' }>;

export const WatchMessage = union('watch message', 'kind', {
  created: variant(0, { watchId: WATCH_ID, revision: field(uint, 'The revision that it begins behind.') }),
  events: variant(1, {
    watchId: WATCH_ID,
    revision: field(uint, 'Everything up to it was sent.'),
    events: field(list(KvEvent), "All events after the previous message's revision, up to this one; may be empty."),
  }),
  /** `COMPACTED`, NOT_LEADER, STALE_EPOCH, … The watch is over; resume after the last revision. */
  ended: variant(2, {
    watchId: WATCH_ID,
    code: field(text, 'The code of the error.'),
    message: field(text, 'The text of the error.'),
    compactRevision: field(uint, 'With COMPACTED: the revision of the last compaction.'),
    ranges: added(maybe(list(RangeDescriptor), 'With STALE_EPOCH: ranges as they are now (stale-epoch.ts).'), {
      since: '0.1.0',
      absent: undefined,
      skippable: 'an answer: the reader asks for the ranges instead',
    }),
  }),
  /** Answers a question and all before it. */
  progress: variant(3, {
    watchId: WATCH_ID,
    revision: field(
      uint,
      'Everything up to it was sent; it is at least that of every write that any range acknowledged before the question arrived.',
    ),
    question: field(uint, 'The question.'),
  }),
});
export type WatchMessage = Infer<typeof WatchMessage>;

/** Reports what happens to locks of a range, for as long as its leader is the same and it has all of them. */
export const LockWatchRequest = struct('lock watch', {
  rangeId: field(uint, 'The range.'),
  epoch: flat(Epoch, 'Its epoch, as the caller knows it.'),
  namespace: field(text, 'The namespace of the locks.'),
  name: field(bytes, 'The name of one lock (`single`), or the common prefix of all names.'),
  single: field(bool, 'Whether it is about one lock.'),
  span: flat(SpanKind, 'The part of them that the range has, in routing keys.'),
});
export interface LockWatchRequest extends Infer<typeof LockWatchRequest> {}

/** Asked before the first request to a range: who leads it, and its time. */
export const RangeInfoRequest = struct('range info request', { rangeId: field(uint, 'The range.') });
export interface RangeInfoRequest extends Infer<typeof RangeInfoRequest> {}

/** Asked while no leader of the range is known: answered when the asked node leads it, at latest after the time. */
export const AwaitLeaderRequest = struct('wait for a leader', {
  rangeId: field(uint, 'The range.'),
  waitMs: field(ms, 'The most milliseconds to wait.'),
});
export interface AwaitLeaderRequest extends Infer<typeof AwaitLeaderRequest> {}

export const RangeInfo = struct('range info', {
  rangeId: field(uint, 'The range.'),
  leaderNode: field(uint, 'The node that leads it; 0: unknown at the moment.'),
  rangeTimeMs: field(ms, 'The time of the range.'),
  revision: field(uint, 'The last revision.'),
  term: field(uint, 'The term of the replica.'),
});
export interface RangeInfo extends Infer<typeof RangeInfo> {}

/** A replica that is no member of its range any more, as of this version of the membership. */
export const RemovedReplica = struct('removed replica', {
  rangeId: field(uint, 'The range.'),
  replicaId: field(uint, 'The replica.'),
  confVersion: field(uint, 'The version of the membership.'),
});
export interface RemovedReplica extends Infer<typeof RemovedReplica> {}
