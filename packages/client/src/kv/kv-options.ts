/** What callers of `Kv` may ask for: the interfaces, each with the set of checks of its fields. */
import { type RangeOp, SCAN_BYTES_MAX } from '@remora/protocol';
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
} from '../options/option-kinds.ts';
import { type ChecksOf, optionSet } from '../options/options.ts';
import type { BytesLike, KeySelector } from './keys.ts';

export interface OperationOptions {
  /** The client's `requestTimeout` unless given; at most 60 s. */
  readonly timeout?: Duration | undefined;
  /** Gives up waiting; a change may still take place. */
  readonly signal?: AbortSignal | undefined;
}

const OPERATION: ChecksOf<OperationOptions> = { timeout: duration, signal };
export const COMPACT_OPTIONS = optionSet<OperationOptions>('compact', OPERATION);

export interface ReadOptions extends OperationOptions {
  /** Read as of this revision. */
  readonly revision?: number | undefined;
  /** Answer from any replica without asking the others: faster, and possibly old. */
  readonly serializable?: boolean | undefined;
}

const READ: ChecksOf<ReadOptions> = { ...OPERATION, revision, serializable: flag };
export const GET_OPTIONS = optionSet<ReadOptions>('get', READ);

export interface RangeOptions extends ReadOptions {
  readonly limit?: number | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly countOnly?: boolean | undefined;
  readonly sort?: { readonly by: RangeOp['sortTarget']; readonly order: 'ascend' | 'descend' } | undefined;
}

const limit = count(0, COUNT_MAX);
export const RANGE_OPTIONS = optionSet<RangeOptions>('range', {
  ...READ,
  ...{ limit, keysOnly: flag, countOnly: flag, sort: object },
});
export const SORT = optionSet<NonNullable<RangeOptions['sort']>>('sort', { by: sortTarget, order: sortOrder });

export interface PagesOptions extends OperationOptions {
  readonly revision?: number | undefined;
  readonly pageBytes?: number | undefined;
}

export const PAGES_OPTIONS = optionSet<PagesOptions>('pages', {
  ...OPERATION,
  ...{ revision, pageBytes: count(1, SCAN_BYTES_MAX) },
});

export interface WriteOptions extends OperationOptions {
  /**
   * Write only while this grant holds its lock, in the same step: otherwise nothing is written, and the write fails with
   * FENCED, however late it arrives.
   */
  readonly fence?: LockVersion | undefined;
}

const WRITE: ChecksOf<WriteOptions> = { ...OPERATION, fence: checkedByCall };
export const TXN_OPTIONS = optionSet<WriteOptions>('txn', WRITE);

export interface PutOptions extends WriteOptions {
  /** The key is deleted when this lease ends. */
  readonly lease?: bigint | undefined;
  /** Return the pair that was there before. */
  readonly prevKv?: boolean | undefined;
}

export const PUT_OPTIONS = optionSet<PutOptions>('put', { ...WRITE, lease: leaseOrNone, prevKv: flag });

export interface DeleteOptions extends WriteOptions {
  readonly prevKv?: boolean | undefined;
}

export const DELETE_OPTIONS = optionSet<DeleteOptions>('delete', { ...WRITE, prevKv: flag });

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

/** Of keys, or whether a grant holds its lock. */
export type TxnCompare = KeyTxnCompare | { readonly held: LockVersion };

export interface KeyTxnCompare {
  readonly key: KeySelector;
  readonly target: 'version' | 'create' | 'mod' | 'lease' | 'value';
  readonly is: '=' | '>' | '<' | '!=';
  readonly than: number | bigint | BytesLike;
}

export const GRANT_COMPARISON = optionSet<{ held: LockVersion }>('a comparison of a grant', { held: checkedByCall });
export const KEY_COMPARISON = optionSet<KeyTxnCompare>('a comparison', {
  ...{ key: checkedByCall, target: checkedByCall, is: checkedByCall, than: checkedByCall },
});

export interface TxnRequest {
  readonly compare?: readonly TxnCompare[] | undefined;
  readonly success?: readonly TxnOperation[] | undefined;
  readonly failure?: readonly TxnOperation[] | undefined;
}

export const TRANSACTION = optionSet<TxnRequest>('a transaction', { compare: list, success: list, failure: list });
