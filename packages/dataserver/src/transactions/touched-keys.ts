/**
 * Determines which plain keys and locks the requests of one range read or may change: these conflict with intents (T2
 * of decision 19).
 */
import type { LockId } from '@remora/lock';
import {
  type Compare,
  isLockCompare,
  type KeyRange,
  type KvOp,
  type Query,
  type Txn,
  type TxnPart,
} from '@remora/protocol';

export interface Touching {
  /** `revision`: 0 reads the current state. */
  reads(range: KeyRange, revision: number): void;
  writes(range: KeyRange): void;
  /** Compares the version by which the lock is held. */
  requires(lock: LockId): void;
  /** The request may end, begin or change the way in which the lock is held. */
  changes(lock: LockId): void;
}

export function touchedByOp(op: KvOp, touching: Touching): void {
  switch (op.type) {
    case 'range':
      return touching.reads(op, op.revision);
    case 'put':
    case 'delete':
      return touching.writes(op);
    case 'txn':
      return touchedByTxn(op.txn, touching);
  }
}

export function touchedByTxn({ compare, success, failure }: Txn, touching: Touching): void {
  for (const one of compare) touchedByCompare(one, touching);
  for (const op of success) touchedByOp(op, touching);
  for (const op of failure) touchedByOp(op, touching);
}

export function touchedByPart({ compares, ops }: TxnPart, touching: Touching): void {
  for (const compare of compares) touchedByCompare(compare, touching);
  for (const { op } of ops) touchedByOp(op, touching);
}

function touchedByCompare(compare: Compare, touching: Touching): void {
  if (isLockCompare(compare)) touching.requires(compare.lock);
  else touching.reads(compare, 0);
}

export function touchedByQuery(query: Query, touching: Touching): void {
  switch (query.type) {
    case 'range':
      return touching.reads(query.op, query.op.revision);
    case 'readTxn':
      return touchedByTxn(query.txn, touching);
    case 'scan':
      return touching.reads(query, query.revision);
    case 'history':
      return touching.reads({ key: query.key }, 0);
    default:
      return;
  }
}
