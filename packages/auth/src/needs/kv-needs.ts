/**
 * What operations on keys need, as in etcd (`server/etcdserver/apply/apply_auth.go`, `server/auth/store.go`).
 *
 * KN1. A transaction needs everything that any of its branches could do, at every depth: which branch runs is known
 *      only when it is applied.
 * KN2. The pair before a change is data: to see it needs to read.
 * KN3. A put that attaches its key to a lease puts it at the mercy of that lease, and of all who may write what the
 *      lease has: it needs to write that, too. If the lease is a session, it must be the user's own.
 */
import { type Compare, isLockCompare, type KvOp, type Txn } from '@remora/protocol';
import type { Need } from './need.ts';

export function needsOfOp(op: KvOp): readonly Need[] {
  switch (op.type) {
    case 'range':
      return [keys('read', op)];
    case 'put': {
      const write = keys('write', op);
      const lease: readonly Need[] =
        op.lease === 0n ? [] : [{ type: 'lease', use: 'attach', lease: op.lease, incarnation: 0 }];
      return [write, ...(op.prevKv ? [keys('read', op)] : []), ...lease]; // KN2, KN3
    }
    case 'delete':
      return [keys('write', op), ...(op.prevKv ? [keys('read', op)] : [])]; // KN2
    case 'txn':
      return needsOfTxn(op.txn);
  }
}

/** KN1. */
export function needsOfTxn({ compare, success, failure }: Txn): readonly Need[] {
  return [...compare.map(needOfCompare), ...[...success, ...failure].flatMap(needsOfOp)];
}

export function needOfCompare(compare: Compare): Need {
  if (isLockCompare(compare)) return { type: 'lock', verb: 'read', ...compare.lock };
  return keys('read', compare);
}

function keys(access: 'read' | 'write', { key, end }: { readonly key: Uint8Array; readonly end?: Uint8Array }): Need {
  return { type: 'keys', access, key, ...(end !== undefined && { end }) };
}
