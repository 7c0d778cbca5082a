/** The routing keys of requests. */
import { type Bytes, compareBytes, keyAfter, prefixEnd, type Span } from '@remora/base';
import { lockPrefix, lockSpan, namespaceSpan, namespacesSpan } from '@remora/lock';
import {
  type Command,
  type Compare,
  isLockCompare,
  type KeyRange,
  KV_SPACE,
  kvRoutingKey,
  LEASE_SPACE,
  LOCK_SPACE,
  type Query,
  type Txn,
  type TxnPart,
} from '@remora/protocol';

export const LEASES: Span = { start: Buffer.from([LEASE_SPACE]), end: Buffer.from([LOCK_SPACE]) };
export const LOCKS: Span = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };
export const PLAIN_KEYS: Span = { start: Buffer.from([KV_SPACE]), end: Buffer.from([KV_SPACE + 1]) };
const EVERYTHING: Span = { start: LEASES.start, end: PLAIN_KEYS.end };

/** Returns one of a request's keys, by which it is routed. */
export function routingKey(request: Command | Query): Bytes {
  switch (request.type) {
    case 'kv':
      return kvRoutingKey(request.op.key);
    case 'range':
      return kvRoutingKey(request.op.key);
    case 'txn':
    case 'readTxn':
      return txnKey(request.txn);
    case 'leaseGrant':
    case 'leaseChange':
    case 'leaseRevoke':
    case 'leaseExpire':
    case 'leaseCheckpoint':
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseSettle':
    case 'leaseKeepAlive':
    case 'session':
    case 'leaseTimeToLive':
      return leaseKey(request.id);
    case 'lockAwait':
    case 'grantEnd':
      return lockPrefix(request.lock);
    case 'lock':
      return 'command' in request ? lockPrefix(request.command.lock) : lockQuerySpan(request.query).start;
    case 'leaseEnd':
      return request.span.start;
    case 'sessions':
      return sessionsSpan(request.after).start;
    case 'leases':
      return LEASES.start;
    case 'leaseKeys':
      return PLAIN_KEYS.start;
    case 'split':
      return request.at;
    case 'txnPrepare':
      return partSpan(request)?.start ?? request.primaryKey;
    case 'txnDecide':
    case 'txnForget':
    case 'txnStatus':
      return request.primaryKey;
    case 'txnResolve':
      return request.span.start;
    case 'scan':
    case 'history':
      return kvRoutingKey(request.key);
    case 'compact':
    case 'raiseRevision':
    case 'recount':
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
    case 'noop':
    case 'closedRevision':
    case 'status':
      return PLAIN_KEYS.start;
  }
}

/** Returns the smallest span with all keys of a request; undefined if `routingKey` is its only one. */
export function routingSpan(request: Command | Query): Span | undefined {
  switch (request.type) {
    case 'kv':
      return request.op.type === 'put' || request.op.end === undefined ? undefined : keysSpan(request.op);
    case 'range':
      return request.op.end === undefined ? undefined : keysSpan(request.op);
    case 'txn':
    case 'readTxn':
      return txnSpan(request.txn);
    case 'txnPrepare':
      return partSpan(request);
    case 'txnResolve':
      return request.span;
    case 'lock':
      return 'command' in request ? undefined : lockQuerySpan(request.query);
    case 'sessions':
      return sessionsSpan(request.after);
    case 'leases':
      return LEASES;
    case 'leaseKeys':
    case 'compact':
      return PLAIN_KEYS;
    case 'status':
      return EVERYTHING;
    case 'scan':
      // A scan that names a revision reads its first range only.
      return request.revision === 0 ? keysSpan(request) : undefined;
    default:
      return undefined;
  }
}

/** The span of the sessions after `after`; 0: of all sessions. */
export function sessionsSpan(after: bigint): Span {
  return after === 0n ? LEASES : { start: prefixEnd(leaseKey(after)), end: LEASES.end };
}

function leaseKey(id: bigint): Buffer {
  const key = Buffer.alloc(9, LEASE_SPACE);
  key.writeBigInt64BE(id, 1);
  return key;
}

/** The span of plain keys in routing keys. An empty range of keys has the span of its first key. */
export function keysSpan({ key, end }: KeyRange): Span {
  const start = kvRoutingKey(key);
  if (end === undefined || (end.length > 0 && compareBytes(end, key) <= 0)) return { start, end: keyAfter(start) };
  return { start, end: end.length === 0 ? PLAIN_KEYS.end : kvRoutingKey(end) };
}

/** The span of the keys, or of the lock, that a comparison reads. */
export function comparedSpan(compare: Compare): Span {
  return isLockCompare(compare) ? lockSpan(compare.lock) : keysSpan(compare);
}

/** The plain keys of a part of their space; the inverse of `keysSpan` for more than one key. */
export function plainKeys({ start, end }: Span): Required<KeyRange> {
  const toLast = compareBytes(end, PLAIN_KEYS.end) === 0;
  return { key: start.subarray(1), end: toLast ? end.subarray(0, 0) : end.subarray(1) };
}

export function hullOf(a: Span | undefined, b: Span): Span {
  if (a === undefined) return b;
  const start = compareBytes(a.start, b.start) < 0 ? a.start : b.start;
  return { start, end: compareBytes(a.end, b.end) > 0 ? a.end : b.end };
}

/** Does not look at all keys if the first part names one. */
function txnKey(txn: Txn): Bytes {
  const [first] = txn.compare.length > 0 ? txn.compare : txn.success.length > 0 ? txn.success : txn.failure;
  return first !== undefined && 'key' in first ? kvRoutingKey(first.key) : (txnSpan(txn) ?? PLAIN_KEYS).start;
}

function txnSpan({ compare, success, failure }: Txn): Span | undefined {
  let hull: Span | undefined;
  for (const part of [...compare, ...success, ...failure]) {
    const span = 'txn' in part ? txnSpan(part.txn) : 'lock' in part ? comparedSpan(part) : keysSpan(part);
    if (span !== undefined) hull = hullOf(hull, span);
  }
  return hull;
}

/** The smallest span with all keys of a part of a transaction over several ranges. */
function partSpan({ compares, ops }: TxnPart): Span | undefined {
  const spans = [...compares.map(comparedSpan), ...ops.map(({ op }) => keysSpan(op))];
  return spans.reduce<Span | undefined>(hullOf, undefined);
}

function lockQuerySpan(query: Extract<Query, { type: 'lock' }>['query']): Span {
  switch (query.type) {
    case 'show':
      return lockSpan(query.lock);
    case 'list':
    case 'search':
      return namespaceSpan(query.namespace, query.prefix);
    case 'namespaces':
      return namespacesSpan(query.after);
    case 'check': {
      const locks = query.checks.map(({ lock }) => lockSpan(lock));
      return locks.reduce<Span | undefined>(hullOf, undefined) ?? { start: LEASES.end, end: keyAfter(LEASES.end) };
    }
  }
}
