/** Which plain keys requests of one range read or may write: what intents keep them from (T2 of decision 19). */
import type { KeyRange, KvOp, Query, Txn, TxnPart } from '@remora/protocol';

export interface Touching {
  /** At a revision; 0: what is there now. */
  reads(range: KeyRange, revision: number): void;
  writes(range: KeyRange): void;
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
  for (const one of compare) touching.reads(one, 0);
  for (const op of success) touchedByOp(op, touching);
  for (const op of failure) touchedByOp(op, touching);
}

export function touchedByPart({ compares, ops }: TxnPart, touching: Touching): void {
  for (const compare of compares) touching.reads(compare, 0);
  for (const { op } of ops) touchedByOp(op, touching);
}

export function touchedByQuery(query: Query, touching: Touching): void {
  switch (query.type) {
    case 'range':
      return touching.reads(query.op, query.op.revision);
    case 'readTxn':
      return touchedByTxn(query.txn, touching);
    case 'scan':
      return touching.reads(query, query.revision);
    default:
      return;
  }
}
