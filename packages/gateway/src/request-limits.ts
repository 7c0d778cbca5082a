import { ServiceError } from '@remora/base';
import { isLockCompare, type KvOp, type Txn } from '@remora/protocol';

/** Limits of one request, through any service; the same on all nodes. */
export interface RequestLimits {
  /** Bytes of keys and values in one request. */
  readonly requestBytesMax: number;
  /** Operations on one path through a transaction: in each of its three lists, including nested transactions. */
  readonly txnOpsMax: number;
}

/** The defaults of etcd (`--max-request-bytes`, `--max-txn-ops`). */
export const REQUEST_LIMITS: RequestLimits = { requestBytesMax: 1.5 * 1024 * 1024, txnOpsMax: 128 };

/** Throws REQUEST_TOO_LARGE above the limit. */
export function checkSize(bytes: number, limits: RequestLimits): void {
  if (bytes <= limits.requestBytesMax) return;
  throw new ServiceError(
    'REQUEST_TOO_LARGE',
    `the request has ${bytes} bytes; ${limits.requestBytesMax} are allowed (--request-bytes-max of the nodes)`,
  );
}

/** Throws TOO_MANY_OPERATIONS above `opsMax`; returns how many a nested transaction may still have. */
export function checkOps(txn: { readonly [K in keyof Txn]: readonly unknown[] }, opsMax: number): number {
  const ops = Math.max(txn.compare.length, txn.success.length, txn.failure.length);
  if (ops <= opsMax) return opsMax - ops;
  throw new ServiceError(
    'TOO_MANY_OPERATIONS',
    'the transaction has too many operations, including nested ones (--txn-ops-max of the nodes)',
  );
}

/** Returns the bytes of keys and values in an operation. */
export function opBytes(op: KvOp): number {
  switch (op.type) {
    case 'put':
      return op.key.length + op.value.length;
    case 'range':
    case 'delete':
      return op.key.length + (op.end?.length ?? 0);
    case 'txn':
      return txnBytes(op.txn);
  }
}

/** Returns the bytes of keys and values in a transaction, in both branches. */
export function txnBytes(txn: Txn): number {
  let bytes = 0;
  for (const compare of txn.compare) {
    if (isLockCompare(compare)) {
      bytes += compare.lock.name.length;
      continue;
    }
    const { key, end, target } = compare;
    bytes += key.length + (end?.length ?? 0);
    if (target.of === 'value') bytes += target.value.length;
  }
  for (const op of txn.success) bytes += opBytes(op);
  for (const op of txn.failure) bytes += opBytes(op);
  return bytes;
}

/** Whether a transaction only reads, so that it needs no log entry. */
export function readsOnly(txn: Txn): boolean {
  return onlyReads(txn.success) && onlyReads(txn.failure);
}

function onlyReads(ops: readonly KvOp[]): boolean {
  return ops.every((op) => op.type === 'range' || (op.type === 'txn' && readsOnly(op.txn)));
}
