/**
 * Key-value operations as the state machine knows them: etcd v3's semantics with typed, checked values. Keys are the
 * user's keys; key spaces and routing are added elsewhere. An `end` that is absent means a single key, an empty one "to
 * the last key".
 *
 * Operations are parts of log entries, and results of remembered outcomes: tags and positions are stored.
 */
import type { Bytes } from '@remora/base';
import type { LockId } from '@remora/lock';
import { closedCodec } from '../schema/codec.ts';
import {
  bool,
  byHand,
  bytes,
  choice,
  field,
  flags,
  flat,
  int64,
  list,
  mapped,
  maybe,
  optional,
  recursive,
  spread,
  struct,
  uint,
  union,
  variant,
  words,
} from '../schema/kinds.ts';
import { malformed } from '../schema/malformed.ts';
import type { Infer, Kind } from '../schema/shape.ts';
import { LockIdKind } from './lock-kinds.ts';

/** Transactions inside transactions: etcd allows a few levels; deeper input is refused before it exhausts the stack. */
export const TXN_DEPTH_MAX = 16;

export interface KeyRange {
  readonly key: Bytes;
  readonly end?: Bytes;
}

export const KeyValue = struct('key value', {
  key: field(bytes, 'The key.'),
  value: field(bytes, 'Its value.'),
  createRevision: field(uint, 'The revision that created the key.'),
  modRevision: field(uint, 'The revision that changed it last.'),
  version: field(uint, '1 for a key just created; grows with each put.'),
  lease: field(int64, 'The lease that the key belongs to; 0: none.'),
});
export interface KeyValue extends Infer<typeof KeyValue> {}

const SPAN = {
  key: field(bytes, 'The key, or the first one of a span.'),
  end: maybe(bytes, 'The key behind the last one; empty: to the last key; absent: one key.'),
};

const PLAIN_OPS = {
  range: variant(0, {
    ...SPAN,
    limit: field(uint, 'The most pairs to return; 0: all.'),
    revision: field(uint, 'Read at this revision; 0: the newest.'),
    sortOrder: field(words('sort order', ['none', 'ascend', 'descend']), 'The order of the pairs.'),
    sortTarget: field(words('sort target', ['key', 'version', 'create', 'mod', 'value']), 'What they are sorted by.'),
    flags: spread(flags(['keysOnly', 'countOnly']), 'Return keys without values, or only the count.'),
    minModRevision: field(uint, 'Only keys changed at or after it; 0: no bound.'),
    maxModRevision: field(uint, 'Only keys changed at or before it; 0: no bound.'),
    minCreateRevision: field(uint, 'Only keys created at or after it; 0: no bound.'),
    maxCreateRevision: field(uint, 'Only keys created at or before it; 0: no bound.'),
  }),
  put: variant(1, {
    key: field(bytes, 'The key.'),
    value: field(bytes, 'Its new value.'),
    lease: field(int64, 'The lease that it belongs to from now on; 0: none.'),
    flags: spread(
      flags(['prevKv', 'ignoreValue', 'ignoreLease']),
      'Return the pair before the change; keep its value; keep its lease.',
    ),
  }),
  delete: variant(2, { ...SPAN, prevKv: field(bool, 'Return the pairs before the change.') }),
};

/** One operation that is no transaction. */
export const PlainOp = union('plain operation', 'type', PLAIN_OPS);
export type PlainOp = Infer<typeof PlainOp>;
export type RangeOp = Extract<PlainOp, { readonly type: 'range' }>;
export type PutOp = Extract<PlainOp, { readonly type: 'put' }>;
export type DeleteOp = Extract<PlainOp, { readonly type: 'delete' }>;

export const RangeOp = union('range operation', 'type', { range: PLAIN_OPS.range });

export interface TxnOp {
  readonly type: 'txn';
  readonly txn: Txn;
}

export type KvOp = PlainOp | TxnOp;

export const KvOp: Kind<KvOp> = union('operation', 'type', {
  ...PLAIN_OPS,
  txn: variant(3, {
    txn: field(
      recursive<Txn>('transaction', TXN_DEPTH_MAX, () => Txn),
      'A transaction of its own.',
    ),
  }),
});

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

const TARGETS = ['version', 'create', 'mod', 'lease', 'value'] as const;
const keyCompareFields = {
  ...SPAN,
  result: field(words('compare result', ['equal', 'greater', 'less', 'notEqual']), 'How it must compare.'),
  of: field(words('compare target', TARGETS), 'What is compared.'),
};
const numberCompare = closedCodec(struct('compare', { ...keyCompareFields, value: field(uint, 'With what.') }));
const leaseCompare = closedCodec(struct('compare', { ...keyCompareFields, value: field(int64, 'With what.') }));
const bytesCompare = closedCodec(struct('compare', { ...keyCompareFields, value: field(bytes, 'With what.') }));
/** Where the compared thing stands, and with it what kind of value follows. */
const TARGET_AT = 3;

/** The kind of the value follows from the target, which stands before it. */
const KeyCompare: Kind<KeyCompare> = byHand<KeyCompare>(
  'compare',
  {
    encode({ target: { of, value }, ...compare }) {
      if (of === 'lease') return leaseCompare.encode({ ...compare, of, value });
      if (of === 'value') return bytesCompare.encode({ ...compare, of, value });
      return numberCompare.encode({ ...compare, of, value });
    },
    decode(raw) {
      switch (Array.isArray(raw) ? TARGETS[raw[TARGET_AT]] : undefined) {
        case 'lease': {
          const { value, of: _, ...compare } = leaseCompare.decode(raw);
          return { ...compare, target: { of: 'lease', value } };
        }
        case 'value': {
          const { value, of: _, ...compare } = bytesCompare.decode(raw);
          return { ...compare, target: { of: 'value', value } };
        }
        case undefined:
          throw malformed('a compare', raw);
        default: {
          const { value, of, ...compare } = numberCompare.decode(raw);
          if (of === 'lease' || of === 'value') throw malformed('a compare of a number', raw);
          return { ...compare, target: { of, value } };
        }
      }
    },
  },
  {
    description: '`[key, end or null, result, target, value]`; the target says whether the value is a number or bytes',
    samples: () => [
      { key: Buffer.from('a'), result: 'equal', target: { of: 'version', value: 0 } },
      { key: Buffer.from('a'), end: Buffer.from('z'), result: 'greater', target: { of: 'create', value: 1 } },
      { key: Buffer.from('a'), result: 'less', target: { of: 'mod', value: 2 } },
      { key: Buffer.from('a'), result: 'notEqual', target: { of: 'lease', value: 0x1234_5678_9abc_def0n } },
      { key: Buffer.from('a'), result: 'equal', target: { of: 'value', value: Buffer.from('v') } },
    ],
  },
);

/** A comparison of a lock begins with it, where others have their key. */
const LOCK_COMPARE_TAG = 0;
const LockCompare: Kind<LockCompare> = mapped(
  union('compare of a lock', 'of', {
    lock: variant(LOCK_COMPARE_TAG, {
      lock: flat(LockIdKind, 'The lock.'),
      version: field(uint, 'The version of the grant that holds it.'),
    }),
  }),
  ({ of: _, ...compare }) => compare,
  (compare) => ({ of: 'lock' as const, ...compare }),
);

export const Compare: Kind<Compare> = choice(LockCompare, KeyCompare, {
  ofValue: (compare) => (isLockCompare(compare) ? 0 : 1),
  ofRaw: ([first]) => (first === LOCK_COMPARE_TAG ? 0 : 1),
});

export interface Txn {
  readonly compare: readonly Compare[];
  readonly success: readonly KvOp[];
  readonly failure: readonly KvOp[];
}

export const Txn: Kind<Txn> = struct('transaction', {
  compare: field(list(Compare), 'All of them must hold.'),
  success: field(list(KvOp), 'Executed if they do.'),
  failure: field(list(KvOp), 'Executed if one of them does not.'),
});

const PLAIN_RESULTS = {
  range: variant(0, {
    kvs: field(list(KeyValue), 'The pairs.'),
    more: field(bool, 'There are more than the limit allows.'),
    count: field(uint, 'The pairs in the range, whatever `limit` says.'),
  }),
  put: variant(1, { prev: field(optional(KeyValue), 'The pair before the change, if it was asked for.') }),
  delete: variant(2, {
    deleted: field(uint, 'How many keys were deleted.'),
    prev: field(list(KeyValue), 'The pairs before the change, if they were asked for.'),
  }),
};
export const PlainResult = union('result of a plain operation', 'type', PLAIN_RESULTS);
export type PlainResult = Infer<typeof PlainResult>;
export type RangeResult = Extract<PlainResult, { readonly type: 'range' }>;
export type PutResult = Extract<PlainResult, { readonly type: 'put' }>;
export type DeleteResult = Extract<PlainResult, { readonly type: 'delete' }>;

export interface TxnResult {
  readonly type: 'txn';
  readonly succeeded: boolean;
  readonly results: readonly KvResult[];
}

export type KvResult = PlainResult | TxnResult;

export const KvResult: Kind<KvResult> = union('result of an operation', 'type', {
  ...PLAIN_RESULTS,
  txn: variant(3, {
    succeeded: field(bool, 'The comparisons held.'),
    results: field(
      list(recursive<KvResult>('result of a transaction', TXN_DEPTH_MAX + 1, () => KvResult)),
      'Of the operations, in their order.',
    ),
  }),
});
/** The discriminants of `KvResult`. */
export const KV_RESULT_TYPES = ['put', 'delete', 'range', 'txn'] as const;

/** One change of one key. */
export interface KvEvent {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
  readonly prev?: KeyValue;
}

const EVENT = {
  kv: field(KeyValue, 'The pair. For a delete only its key and `modRevision`, of the delete, mean something.'),
  prev: maybe(KeyValue, 'The pair before the change, if it is not compacted and the watch asked for it.'),
};
export const KvEvent: Kind<KvEvent> = union('event', 'type', { put: variant(0, EVENT), delete: variant(1, EVENT) });
