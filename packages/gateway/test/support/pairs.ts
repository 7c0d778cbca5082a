/**
 * Plain keys, and a lock, as simply as they can be: what operations do to them, and transactions as a whole. For tests.
 */
import {
  type Compare,
  compareHolds,
  isLockCompare,
  type KeyRange,
  type KeyValue,
  type KvOp,
  type KvResult,
  type PartOp,
  shapeRange,
  type Txn,
  type TxnResult,
} from '@remora/protocol';

/** By key, as text. */
export type Pairs = Map<string, KeyValue>;

/** What comparisons look at. `held`: the version by which the only lock is held. */
export interface Compared {
  readonly pairs: Pairs;
  readonly held: number;
}

export function inside(pairs: Pairs, { key, end }: KeyRange): readonly KeyValue[] {
  const from = text(key);
  const to = end === undefined ? `${from}\0` : text(end);
  return [...pairs]
    .filter(([at]) => at >= from && (to === '' || at < to))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, kv]) => kv);
}

/** undefined: a span without keys. */
export function holds(compare: Compare, { pairs, held }: Compared): boolean | undefined {
  if (isLockCompare(compare)) return compare.version === held;
  const found = inside(pairs, compare);
  if (found.length > 0) return found.every((kv) => compareHolds(compare, kv));
  return compare.end === undefined ? compareHolds(compare, undefined) : undefined;
}

export function execute(op: PartOp['op'], pairs: Pairs, revision: number): Exclude<KvResult, { type: 'txn' }> {
  switch (op.type) {
    case 'range': {
      const kvs = inside(pairs, op);
      return shapeRange(op, { kvs, count: kvs.length });
    }
    case 'delete': {
      const prev = inside(pairs, op);
      for (const { key } of prev) pairs.delete(text(key));
      return { type: 'delete', deleted: prev.length, prev: op.prevKv ? prev : [] };
    }
    case 'put': {
      const prev = pairs.get(text(op.key));
      const { createRevision, version } = prev ?? { createRevision: revision, version: 0 };
      const { key, value, lease } = op;
      pairs.set(text(key), { key, value, lease, createRevision, modRevision: revision, version: version + 1 });
      return { type: 'put', prev: op.prevKv ? prev : undefined };
    }
  }
}

/** A transaction in one place, at one moment. */
export function executeTxn(
  { compare, success, failure }: Txn,
  { pairs, held }: Compared,
  revision: number,
  before: Compared = { pairs: new Map(pairs), held },
): TxnResult {
  const succeeded = compare.every((one) => holds(one, before) ?? (!isLockCompare(one) && compareHolds(one, undefined)));
  const one = (op: KvOp): KvResult =>
    op.type === 'txn' ? executeTxn(op.txn, { pairs, held }, revision, before) : execute(op, pairs, revision);
  return { type: 'txn', succeeded, results: (succeeded ? success : failure).map(one) };
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

/** To compare results of whatever bytes. */
export function shown(result: unknown): string {
  return JSON.stringify(result, (_name, value) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (value?.type === 'Buffer') return Buffer.from(value.data).toString('latin1');
    return value instanceof Uint8Array ? text(value) : value;
  });
}
