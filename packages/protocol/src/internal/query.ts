/**
 * Queries are answered by the leader without a log entry, after ReadIndex where they say so. A reader refuses fields of
 * a query that it does not know: what a query asks for restricts its answer. Tags are apart from those of commands, so
 * that a mix-up cannot decode; 56 and 57 are in session-api.ts.
 */
import {
  added,
  bool,
  bytes,
  field,
  flat,
  int64,
  list,
  maybe,
  ms,
  optional,
  spread,
  struct,
  text,
  textMap,
  uint,
  union,
  unionWith,
  variant,
  yes,
} from '../schema/kinds.ts';
import type { Infer, Kind } from '../schema/shape.ts';
import { KeyValue, KV_RESULT_TYPES, KvEvent, KvResult, RangeOp, Txn } from './kv-types.ts';
import { OWNER } from './lease-api.ts';
import {
  LockIdKind,
  LockQueryKind,
  LockQueryResultKind,
  LockResultKind,
  OwnerKind,
  RevocationKind,
  SessionRefKind,
} from './lock-kinds.ts';
import { SESSION_QUERIES, SESSION_RESULTS } from './session-api.ts';
import { TxnId, TxnState } from './transaction-api.ts';

/** Most bytes that a scan may ask for. */
export const SCAN_BYTES_MAX = 4 * 1024 * 1024;

const LEASE_ID = field(int64, 'The lease.');
const INCARNATION = field(uint, 'Tells it from earlier leases of the same id; 0: any.');
const SERIALIZABLE = field(bool, 'Reads what the replica has applied, without ReadIndex.');

export const Query = union('query', 'type', {
  range: variant(32, { op: field(RangeOp, 'What to read.'), serializable: SERIALIZABLE }),
  /** A transaction that writes nothing. */
  readTxn: variant(33, { txn: field(Txn, 'The transaction.'), serializable: SERIALIZABLE }),
  /** Renews; acknowledged only by a leader confirmed after receipt (design §9). */
  leaseKeepAlive: variant(34, { id: LEASE_ID, incarnation: INCARNATION }),
  leaseTimeToLive: variant(35, { id: LEASE_ID, keys: field(bool, 'Return its keys.') }),
  leases: variant(36, {}),
  lock: variant(37, { query: field(LockQueryKind, 'What to read of locks.') }),
  status: variant(38, {}),
  /** Waits for a queued acquire: answered when that owner is granted, refused or no longer in the queue. */
  lockAwait: variant(39, {
    wait: spread(
      struct('queued acquire', {
        lock: flat(LockIdKind, 'The lock.'),
        owner: flat(OwnerKind, 'The owner that waits.'),
      }),
      'The lock and the waiter.',
    ),
  }),
  /**
   * Waits for the end of a grant: answered at once if `version` is not the current one, otherwise when the lock was
   * taken from its holder or handed on. If its holder releases it and no owner waits, an answer is optional.
   */
  grantEnd: variant(40, {
    lock: flat(LockIdKind, 'The lock.'),
    version: field(uint, 'The version of the grant.'),
    session: flat(SessionRefKind, "The holder's session."),
    known: added(maybe(uint, 'Also answered when the holder is asked to release, except by this request; 0: by any.'), {
      since: '0.1.0',
      absent: undefined,
    }),
  }),
  /**
   * Waits until the range has closed a revision that was drawn from the masters: it writes nothing at or below it any
   * more, and can be read at it.
   */
  closedRevision: variant(41, { revision: field(uint, 'The revision; 0: returns the closed one.') }),
  /**
   * Returns the first plain keys of `[key, end)`, in order, until their pairs have this many bytes. It costs what it
   * returns, however large the span is. The answer carries the newest revision, and the rest can be read at that one,
   * too.
   */
  scan: variant(42, {
    key: field(bytes, 'The first key.'),
    end: field(bytes, 'The key behind the last; empty: to the last.'),
    revision: field(uint, 'Read at this revision; 0: the newest.'),
    bytes: field(uint, 'Stop when the pairs have this many bytes.'),
    limit: added(maybe(uint, 'Stop after this many pairs.'), { since: '0.1.0', absent: undefined }),
    keysOnly: added(maybe(yes, 'Return pairs without their values.'), { since: '0.1.0', absent: undefined }),
  }),
  /** How a transaction over several ranges stands, as its record says; changes nothing, unlike a push. */
  txnStatus: variant(43, {
    txnId: field(TxnId, 'The attempt.'),
    primaryKey: field(bytes, 'A routing key of its part 0.'),
  }),
  /**
   * The versions of one key, the newest first, deletions included; none that a compaction has made unreadable. It costs
   * what it returns, however often the key was changed.
   */
  history: variant(44, {
    key: field(bytes, 'The key.'),
    before: field(uint, 'Only versions before this revision; 0: from the newest.'),
    limit: field(uint, 'Stop after this many versions.'),
    bytes: field(uint, 'Stop when the versions have this many bytes.'),
  }),
  /** The plain keys that belong to this very lease in a range that is not its home. */
  leaseKeys: variant(50, { id: LEASE_ID, incarnation: INCARNATION }),
  ...SESSION_QUERIES,
});
export type Query = Infer<typeof Query>;

export const LeaseInfo = struct('lease', {
  id: LEASE_ID,
  incarnation: INCARNATION,
  grantedTtlMs: field(ms, 'Its TTL in milliseconds.'),
  remainingMs: field(ms, 'Milliseconds until it expires unless it is renewed; -1: it is unknown.'),
  keys: field(list(bytes), 'Its keys, if they were asked for.'),
  attributes: field(textMap, 'What its client says of itself.'),
  endsEmpty: added(field(bool, 'It never expires, and ends when no lock and no key belongs to it any more.'), {
    since: '0.1.0',
    absent: false,
    skippable: 'an answer',
  }),
  owner: added(maybe(text, OWNER), { since: '0.1.0', absent: undefined, skippable: 'an answer' }),
});
export interface LeaseInfo extends Infer<typeof LeaseInfo> {}

export const RangeStatus = struct('range status', {
  rangeId: field(uint, 'The range.'),
  leaderNode: field(uint, 'The node that leads it; 0: unknown.'),
  term: field(uint, 'The term of the replica.'),
  commit: field(uint, 'The index up to which its log is committed.'),
  applied: field(uint, 'The index up to which it has applied it.'),
  revision: field(uint, 'The last revision.'),
  compactRevision: field(uint, 'The revision of the last compaction.'),
  bytes: field(uint, 'About how many bytes keys and values have.'),
  keys: field(uint, 'About how many plain keys it has.'),
  leases: field(uint, 'How many leases it has.'),
  watches: field(uint, 'How many watches it serves.'),
  replicas: field(
    list(
      struct('replica status', {
        replicaId: field(uint, 'The replica.'),
        nodeId: field(uint, 'The node that holds it.'),
        match: field(uint, 'The highest log index known to be durable there.'),
        commit: field(uint, 'The highest log index known to be committed there; it applies up to it.'),
        state: field(
          text,
          '`leader`, or how the leader sends to it: `probe`, `replicate`, `snapshot`; `unknown` on other replicas.',
        ),
      }),
    ),
    'As the leader sees them; only the answering replica itself when it does not lead.',
  ),
});
export interface RangeStatus extends Infer<typeof RangeStatus> {}

/** The variants of results, but for `lock`, which commands have too. */
export const QUERY_RESULTS = {
  leaseKeepAlive: variant(34, {
    id: LEASE_ID,
    incarnation: INCARNATION,
    ttlMs: field(ms, 'Its TTL in milliseconds; -1: the lease is unknown.'),
  }),
  leaseTimeToLive: variant(35, { lease: field(LeaseInfo, 'The lease.') }),
  leases: variant(36, { ids: field(list(int64), 'The ids of the leases.') }),
  status: variant(38, { status: field(RangeStatus, 'How the replica stands.') }),
  lockAwait: variant(39, { result: field(LockResultKind, 'The result of the acquire.') }),
  grantEnd: variant(40, { sessionAlive: field(bool, 'It was taken from a holder whose session continues.') }),
  closedRevision: variant(41, {
    closed: field(uint, 'The revision up to which the range is closed.'),
    floor: field(
      uint,
      'The range may have counted revisions up to it by itself, without the masters. A caller that asked for a lower one may miss writes that were acknowledged before: it draws another one above this floor.',
    ),
  }),
  scan: variant(42, {
    kvs: field(list(KeyValue), 'The pairs; there may be none although there is a `next`.'),
    next: field(optional(bytes), 'The key to continue from; absent: the whole span was read.'),
  }),
  txnStatus: variant(43, { outcome: field(TxnState, 'How the transaction stands.') }),
  history: variant(44, {
    versions: field(list(KvEvent), 'The newest first.'),
    more: field(bool, 'There are older ones.'),
    compactRevision: field(uint, 'The revision of the last compaction.'),
  }),
  leaseKeys: variant(50, { keys: field(list(bytes), 'The keys.') }),
  /** The grant is the current one, and its holder is asked to release it; another answer to `grantEnd`. */
  grantAsked: variant(51, { revocation: field(RevocationKind, 'The request.') }),
  ...SESSION_RESULTS,
};
export const LOCK_QUERY_RESULT = variant(37, { result: field(LockQueryResultKind, 'The result.') });

const PlainQueryResult = union('result of a query', 'type', { ...QUERY_RESULTS, lock: LOCK_QUERY_RESULT });
export type QueryResult = KvResult | Infer<typeof PlainQueryResult>;
export const QueryResult: Kind<QueryResult> = unionWith(
  'result of a query',
  'type',
  { ...QUERY_RESULTS, lock: LOCK_QUERY_RESULT },
  { tag: 32, of: KvResult, types: KV_RESULT_TYPES },
);
