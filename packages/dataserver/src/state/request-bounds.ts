/**
 * Whether a request concerns only keys within a range's bounds: checked when the request arrives, and again when it is
 * applied.
 */
import { type Bytes, compareBytes, type Span, spanContains, spanCovers, unreachable } from '@remora/base';
import { type LockId, type LockQuery, lockPrefix, namespaceSpan, namespacesSpan } from '@remora/lock';
import {
  type Command,
  type Compare,
  isLockCompare,
  type KeyRange,
  type KvOp,
  type Query,
  type Txn,
  type TxnPart,
} from '@remora/protocol';
import { type RangeBounds, spansOverlap } from './bounds.ts';
import { leaseKey } from './keys.ts';

export function commandWithin(bounds: RangeBounds, command: Command): boolean {
  if (bounds.whole) return true;
  switch (command.type) {
    case 'kv':
      return keysWithin(bounds, command.op);
    case 'txn':
      return txnWithin(bounds, command.txn);
    case 'lock':
      return lockWithin(bounds, command.command.lock);
    case 'leaseGrant':
    case 'leaseChange':
    case 'leaseCheckpoint':
    case 'leaseRevoke':
    case 'leaseExpire':
    case 'leaseRegister':
    case 'leaseSettle':
      return spanContains(bounds.routed, leaseKey(command.id));
    case 'txnPrepare':
      return partWithin(bounds, command) && (command.part !== 0 || spanContains(bounds.routed, command.primaryKey));
    case 'txnDecide':
    case 'txnForget':
      return spanContains(bounds.routed, command.primaryKey);
    case 'txnResolve':
      return spanCovers(bounds.routed, command.span);
    case 'leaseRefer':
      return spanCovers(bounds.routed, command.span);
    case 'leaseEnd':
      return spanContains(bounds.routed, command.span.start); // the command names its part
    case 'split': // these report themselves why they are refused
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
    case 'compact':
    case 'raiseRevision':
    case 'recount':
    case 'noop':
      return true;
    default:
      return unreachable(command);
  }
}

export function queryWithin(bounds: RangeBounds, query: Query): boolean {
  if (bounds.whole) return true;
  switch (query.type) {
    case 'range':
      return keysWithin(bounds, query.op);
    case 'readTxn':
      return txnWithin(bounds, query.txn);
    case 'scan':
      return keysWithin(bounds, { key: query.key }); // it covers everything up to the end of the range
    case 'history':
      return keysWithin(bounds, { key: query.key });
    case 'session':
      // A range that is not the lease's home reports its own part of the lease.
      return query.incarnation !== 0 || spanContains(bounds.routed, leaseKey(query.id));
    case 'leaseKeepAlive':
    case 'leaseTimeToLive':
      return spanContains(bounds.routed, leaseKey(query.id));
    case 'lock':
      return lockQueryWithin(bounds, query.query);
    case 'lockAwait':
    case 'grantEnd':
      return lockWithin(bounds, query.lock);
    case 'txnStatus':
      return spanContains(bounds.routed, query.primaryKey);
    case 'leaseKeys':
    case 'sessions':
    case 'leases':
    case 'closedRevision':
    case 'status':
      return true; // about the range, whatever its keys
    default:
      return unreachable(query);
  }
}

function txnWithin(bounds: RangeBounds, { compare, success, failure }: Txn): boolean {
  const inside = (op: KvOp): boolean => (op.type === 'txn' ? txnWithin(bounds, op.txn) : keysWithin(bounds, op));
  return compare.every((one) => compareWithin(bounds, one)) && success.every(inside) && failure.every(inside);
}

function partWithin(bounds: RangeBounds, { compares, ops }: TxnPart): boolean {
  return compares.every((one) => compareWithin(bounds, one)) && ops.every(({ op }) => keysWithin(bounds, op));
}

function compareWithin(bounds: RangeBounds, compare: Compare): boolean {
  return isLockCompare(compare) ? lockWithin(bounds, compare.lock) : keysWithin(bounds, compare);
}

/** The plain keys `[key, end)`, or `key` alone. */
function keysWithin({ keys }: RangeBounds, { key, end }: KeyRange): boolean {
  if (keys === undefined || !spanContains(keys, key)) return false;
  return end === undefined || spanCovers(keys, { start: key, end }) || isEmpty(key, end);
}

function isEmpty(key: Bytes, end: Bytes): boolean {
  return end.length > 0 && compareBytes(end, key) <= 0;
}

/** Whether a span of plain keys, such as a watch's, lies within the bounds. */
export function keySpanWithin(bounds: RangeBounds, { start, end }: Span): boolean {
  return bounds.whole || keysWithin(bounds, { key: start, end });
}

export function lockWithin({ routed }: RangeBounds, lock: LockId): boolean {
  return spanContains(routed, lockPrefix(lock));
}

function lockQueryWithin(bounds: RangeBounds, query: LockQuery): boolean {
  switch (query.type) {
    case 'show':
      return lockWithin(bounds, query.lock);
    case 'namespaces':
      return spansOverlap(bounds.routed, namespacesSpan(query.after));
    case 'list':
    case 'search':
      // The range lists its part of the locks: the caller knows the range's bounds by its epoch, and asks other ranges
      // for the rest.
      return spansOverlap(bounds.routed, namespaceSpan(query.namespace, query.prefix));
    case 'check':
      return query.checks.every(({ lock }) => lockWithin(bounds, lock));
    default:
      return unreachable(query);
  }
}
