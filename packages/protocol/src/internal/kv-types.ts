import type { Bytes } from '@remora/base';
import type { LockId } from '@remora/lock';

/**
 * Key-value operations as the state machine knows them: etcd v3's semantics with typed, checked values. Keys are the
 * user's keys; key spaces and routing are added by codecs. A `Span` in here is `[key, end)` with `end` absent for a
 * single key and empty for "to the last key".
 */
export interface KeyRange {
  readonly key: Bytes;
  readonly end?: Bytes;
}

export interface KeyValue {
  readonly key: Bytes;
  readonly value: Bytes;
  readonly createRevision: number;
  readonly modRevision: number;
  /** 1 for a key just created; grows with each put. */
  readonly version: number;
  /** 0n: none. */
  readonly lease: bigint;
}

export interface RangeOp extends KeyRange {
  readonly type: 'range';
  /** Most pairs to return; 0: all. */
  readonly limit: number;
  /** Read at this revision; 0: the newest. */
  readonly revision: number;
  readonly sortOrder: 'none' | 'ascend' | 'descend';
  readonly sortTarget: 'key' | 'version' | 'create' | 'mod' | 'value';
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
  /** 0: no bound. */
  readonly minModRevision: number;
  readonly maxModRevision: number;
  readonly minCreateRevision: number;
  readonly maxCreateRevision: number;
}

export interface PutOp {
  readonly type: 'put';
  readonly key: Bytes;
  readonly value: Bytes;
  readonly lease: bigint;
  readonly prevKv: boolean;
  readonly ignoreValue: boolean;
  readonly ignoreLease: boolean;
}

export interface DeleteOp extends KeyRange {
  readonly type: 'delete';
  readonly prevKv: boolean;
}

export interface TxnOp {
  readonly type: 'txn';
  readonly txn: Txn;
}

export type KvOp = RangeOp | PutOp | DeleteOp | TxnOp;

export type Compare = KeyCompare | LockCompare;

export interface KeyCompare extends KeyRange {
  readonly result: 'equal' | 'greater' | 'less' | 'notEqual';
  /** `number` for version, create and mod; `bigint` for lease; bytes for value. */
  readonly target:
    | { readonly of: 'version' | 'create' | 'mod'; readonly value: number }
    | { readonly of: 'lease'; readonly value: bigint }
    | { readonly of: 'value'; readonly value: Bytes };
}

/** Holds when the lock is held by a grant of this version: what is written then is written under the lock. */
export interface LockCompare {
  readonly lock: LockId;
  readonly version: number;
}

export function isKeyCompare(compare: Compare): compare is KeyCompare {
  return 'key' in compare;
}

export function isLockCompare(compare: Compare): compare is LockCompare {
  return 'lock' in compare;
}

export interface Txn {
  readonly compare: readonly Compare[];
  readonly success: readonly KvOp[];
  readonly failure: readonly KvOp[];
}

export interface RangeResult {
  readonly type: 'range';
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  /** Pairs in the range, whatever `limit` says. */
  readonly count: number;
}
export interface PutResult {
  readonly type: 'put';
  readonly prev: KeyValue | undefined;
}
export interface DeleteResult {
  readonly type: 'delete';
  readonly deleted: number;
  readonly prev: readonly KeyValue[];
}
export interface TxnResult {
  readonly type: 'txn';
  readonly succeeded: boolean;
  readonly results: readonly KvResult[];
}
export type KvResult = RangeResult | PutResult | DeleteResult | TxnResult;

/** One change of one key. */
export interface KvEvent {
  readonly type: 'put' | 'delete';
  /** For a delete only `key` and `modRevision` (of the delete) mean something. */
  readonly kv: KeyValue;
  /** The pair before the change; present when it existed and is not compacted, and the watch asked for it. */
  readonly prev?: KeyValue;
}
