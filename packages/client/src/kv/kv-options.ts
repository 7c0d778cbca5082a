/** What callers of `Kv` may ask for: the interfaces, each with the set of checks of its fields. */
import { SCAN_BYTES_MAX } from '@remora/protocol';
import type { LockVersion } from '../lock/lock-version.ts';
import type { Duration } from '../options/duration.ts';
import {
  bytes,
  COUNT_MAX,
  checkedByCall,
  count,
  duration,
  flag,
  leaseOrNone,
  list,
  object,
  revision,
  signal,
  sortOrder,
  sortTarget,
  wholeNumber,
} from '../options/option-kinds.ts';
import { type ChecksOf, optionSet } from '../options/options.ts';
import type { Page } from '../values/listing.ts';
import type { BytesLike, KeySelector, KvPair } from './keys.ts';

export interface OperationOptions {
  /** How long the call may take, retries included: 1 ms to 60 s. Default: `requestTimeout` of the client. */
  readonly timeout?: Duration | undefined;
  /** Stops waiting for the answer when it aborts (CANCELED). A write that was sent may still be applied. */
  readonly signal?: AbortSignal | undefined;
}

const OPERATION: ChecksOf<OperationOptions> = { timeout: duration, signal };
export const COMPACT_OPTIONS = optionSet<OperationOptions>('compact', OPERATION);

export interface ReadOptions extends OperationOptions {
  /** Read the state as of this revision. Default 0: the newest. Throws COMPACTED for a revision that was compacted. */
  readonly revision?: number | undefined;
  /**
   * Read the state of one replica as it is, without confirming that it is the newest: faster, and possibly stale.
   * Default false: the read is linearizable.
   */
  readonly serializable?: boolean | undefined;
}

const READ: ChecksOf<ReadOptions> = { ...OPERATION, revision, serializable: flag };
export const GET_OPTIONS = optionSet<ReadOptions>('get', READ);

/** What pairs are sorted by. */
export type SortTarget = 'key' | 'version' | 'createRevision' | 'modRevision' | 'value';

export interface RangeOptions extends ReadOptions {
  /** Return at most this many pairs. Default 0: no limit. */
  readonly limit?: number | undefined;
  /** Return keys with empty values. Default false. */
  readonly keysOnly?: boolean | undefined;
  /** Return no pairs, only their `count`. Default false. */
  readonly countOnly?: boolean | undefined;
  /** The order of the pairs. Default: ascending by key. A limit applies after the sort. */
  readonly sort?: { readonly by: SortTarget; readonly order: 'ascend' | 'descend' } | undefined;
}

const limit = count(0, COUNT_MAX);
export const RANGE_OPTIONS = optionSet<RangeOptions>('range', {
  ...READ,
  ...{ limit, keysOnly: flag, countOnly: flag, sort: object },
});
export const SORT = optionSet<NonNullable<RangeOptions['sort']>>('sort', { by: sortTarget, order: sortOrder });

export interface KvListOptions extends OperationOptions {
  /** Read the state as of this revision. Default: the newest when the first page is read. */
  readonly revision?: number | undefined;
  /** The most pairs that one page has. Default: as many as `pageBytes` allows. */
  readonly pageSize?: number | undefined;
  /** About how many bytes of pairs one page carries. Default 512 KiB. */
  readonly pageBytes?: number | undefined;
  /** Return keys with empty values. Default false. */
  readonly keysOnly?: boolean | undefined;
}

/** One page of a list of pairs. */
export interface KvPage extends Page<KvPair> {
  /** The revision that all pages show. */
  readonly revision: number;
}

export const KV_LIST_OPTIONS = optionSet<KvListOptions>('list of keys', {
  ...{ ...OPERATION, revision, pageSize: count(1, COUNT_MAX), pageBytes: count(1, SCAN_BYTES_MAX), keysOnly: flag },
});

export interface WriteOptions extends OperationOptions {
  /**
   * Write only if this grant still holds its lock, checked in the same atomic step. Otherwise nothing is written,
   * however late the request arrives, and the call throws FENCED.
   */
  readonly fence?: LockVersion | undefined;
}

const WRITE: ChecksOf<WriteOptions> = { ...OPERATION, fence: checkedByCall };
export const TXN_OPTIONS = optionSet<WriteOptions>('txn', WRITE);

export interface PutOptions extends WriteOptions {
  /** The key is deleted when this lease ends. Default 0n: no lease. */
  readonly lease?: bigint | undefined;
  /** Return the pair that the key had before. Default false. */
  readonly prevKv?: boolean | undefined;
}

export const PUT_OPTIONS = optionSet<PutOptions>('put', { ...WRITE, lease: leaseOrNone, prevKv: flag });

export interface PutIfAbsentOptions extends WriteOptions {
  /** The key is deleted when this lease ends. Default 0n: no lease. */
  readonly lease?: bigint | undefined;
}

export const PUT_IF_ABSENT_OPTIONS = optionSet<PutIfAbsentOptions>('putIfAbsent', { ...WRITE, lease: leaseOrNone });

export interface CompareAndSetOptions extends WriteOptions {
  /** The key is deleted when this lease ends. Default 0n: no lease. */
  readonly lease?: bigint | undefined;
}

export const COMPARE_AND_SET_OPTIONS = optionSet<CompareAndSetOptions>('compareAndSet', {
  ...{ ...WRITE, lease: leaseOrNone },
});

export interface IncrementOptions extends WriteOptions {
  /** How much to add, a whole number; it may be negative. Default 1. */
  readonly by?: number | undefined;
  /**
   * A key that records this increment, written in the same transaction. All calls with the same `once` change the
   * counter once altogether, while that key exists: a call may be repeated after UNKNOWN_OUTCOME, also by another
   * process. Default: no record.
   */
  readonly once?: BytesLike | undefined;
  /** The lease with which the record ends. Default 0n: it stays until it is deleted. */
  readonly onceLease?: bigint | undefined;
  /** The lease of a counter that this call creates; one that exists keeps its own. Default 0n: no lease. */
  readonly lease?: bigint | undefined;
}

export const INCREMENT_OPTIONS = optionSet<IncrementOptions>('increment', {
  ...{ ...WRITE, by: wholeNumber, once: bytes, onceLease: leaseOrNone, lease: leaseOrNone },
});

/** `timeout` is for all runs together. */
export type StmOptions = WriteOptions;

export const STM_OPTIONS = optionSet<StmOptions>('stm', WRITE);

export interface StmPutOptions {
  /** The key is deleted when this lease ends. Default 0n: no lease. */
  readonly lease?: bigint | undefined;
}

export const STM_PUT_OPTIONS = optionSet<StmPutOptions>('a put of an stm', { lease: leaseOrNone });

export interface DeleteOptions extends WriteOptions {
  /** Return the deleted pairs. Default false. */
  readonly prevKv?: boolean | undefined;
}

export const DELETE_OPTIONS = optionSet<DeleteOptions>('delete', { ...WRITE, prevKv: flag });

/** One operation of a transaction: a put, a delete of one key or several, or a read. */
export type TxnOperation =
  | {
      readonly put: BytesLike;
      readonly value: BytesLike;
      readonly lease?: bigint | undefined;
      readonly prevKv?: boolean | undefined;
    }
  | { readonly delete: KeySelector; readonly prevKv?: boolean | undefined }
  | ({ readonly get: KeySelector } & Omit<RangeOptions, 'timeout' | 'signal' | 'serializable'>);

type TxnOperationOf<Name extends string> = Extract<TxnOperation, { readonly [name in Name]: unknown }>;
export const TXN_PUT = optionSet<TxnOperationOf<'put'>>('a put of a transaction', {
  ...{ put: bytes, value: bytes, lease: leaseOrNone, prevKv: flag },
});
export const TXN_DELETE = optionSet<TxnOperationOf<'delete'>>('a delete of a transaction', {
  ...{ delete: checkedByCall, prevKv: flag },
});
export const TXN_READ = optionSet<TxnOperationOf<'get'>>('a read of a transaction', {
  ...{ get: checkedByCall, revision, limit, keysOnly: flag, countOnly: flag, sort: object },
});

/** One condition of a transaction: about keys, or that a grant still holds its lock. */
export type TxnCompare = KeyTxnCompare | { readonly held: LockVersion };

/** Holds if each of the selected keys fulfils it. A key that does not exist has version, revisions and lease 0. */
export interface KeyTxnCompare {
  readonly key: KeySelector;
  /** The field of the pair to compare; `version` counts the puts since the key was created. */
  readonly target: 'version' | 'createRevision' | 'modRevision' | 'lease' | 'value';
  readonly is: '=' | '>' | '<' | '!=';
  /** Text or bytes for `value`, a bigint for `lease`, otherwise a number. */
  readonly than: number | bigint | BytesLike;
}

export const GRANT_COMPARISON = optionSet<{ held: LockVersion }>('a comparison of a grant', { held: checkedByCall });
export const KEY_COMPARISON = optionSet<KeyTxnCompare>('a comparison', {
  ...{ key: checkedByCall, target: checkedByCall, is: checkedByCall, than: checkedByCall },
});

export interface TxnRequest {
  /** Conditions, all of which must hold. Default: none, so `success` is applied. */
  readonly compare?: readonly TxnCompare[] | undefined;
  /** Applied when all conditions hold. */
  readonly success?: readonly TxnOperation[] | undefined;
  /** Applied otherwise. */
  readonly failure?: readonly TxnOperation[] | undefined;
}

export const TRANSACTION = optionSet<TxnRequest>('a transaction', { compare: list, success: list, failure: list });
