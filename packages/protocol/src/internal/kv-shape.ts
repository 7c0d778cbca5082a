/** Turns found pairs into a read's answer, and evaluates comparisons: the same code wherever that is done. */
import { compareBytes } from '@remora/base';
import type { KeyCompare, KeyRange, KeyValue, RangeOp, RangeResult } from './kv-types.ts';

/**
 * The pairs of a range: `kvs` are all of them, or the first ones if the operation can return no more; `count` counts
 * all.
 */
export interface FoundPairs {
  readonly kvs: readonly KeyValue[];
  readonly count: number;
}

/** The comparable fields of a pair. */
type ComparedPair = Omit<KeyValue, 'key'>;

/** A read of keys: by default all present pairs, in the order of their keys; `wanted` overrides that. */
export function rangeOp({ key, end }: KeyRange, wanted: Partial<Omit<RangeOp, keyof KeyRange>> = {}): RangeOp {
  const op: RangeOp = {
    type: 'range',
    key,
    limit: wanted.limit ?? 0,
    revision: wanted.revision ?? 0,
    sortOrder: wanted.sortOrder ?? 'none',
    sortTarget: wanted.sortTarget ?? 'key',
    keysOnly: wanted.keysOnly ?? false,
    countOnly: wanted.countOnly ?? false,
    minModRevision: wanted.minModRevision ?? 0,
    maxModRevision: wanted.maxModRevision ?? 0,
    minCreateRevision: wanted.minCreateRevision ?? 0,
    maxCreateRevision: wanted.maxCreateRevision ?? 0,
  };
  return end === undefined ? op : { ...op, end };
}

/** Filters, sorts and limits like etcd's Range: `count` counts the pairs of the range, whatever `limit` is. */
export function shapeRange(op: RangeOp, { kvs: all, count }: FoundPairs): RangeResult {
  const kept = hasFilters(op) ? all.filter((kv) => passes(op, kv)) : all;
  if (op.countOnly) return { type: 'range', kvs: [], more: false, count };
  let kvs = sorted(op, kept);
  const more = op.limit > 0 && kvs.length > op.limit;
  if (more) kvs = kvs.slice(0, op.limit);
  if (op.keysOnly) kvs = kvs.map((kv) => ({ ...kv, value: kv.value.subarray(0, 0) }));
  return { type: 'range', kvs, more, count };
}

export function hasFilters(op: RangeOp): boolean {
  return op.minModRevision > 0 || op.maxModRevision > 0 || op.minCreateRevision > 0 || op.maxCreateRevision > 0;
}

function passes(op: RangeOp, kv: KeyValue): boolean {
  if (op.minModRevision > 0 && kv.modRevision < op.minModRevision) return false;
  if (op.maxModRevision > 0 && kv.modRevision > op.maxModRevision) return false;
  if (op.minCreateRevision > 0 && kv.createRevision < op.minCreateRevision) return false;
  return !(op.maxCreateRevision > 0 && kv.createRevision > op.maxCreateRevision);
}

function sorted(op: RangeOp, kvs: readonly KeyValue[]): readonly KeyValue[] {
  if (op.sortOrder === 'none' || (op.sortTarget === 'key' && op.sortOrder === 'ascend')) {
    // As in etcd, a target without an order sorts in ascending order.
    if (op.sortTarget === 'key') return kvs;
  }
  const sign = op.sortOrder === 'descend' ? -1 : 1;
  return [...kvs].sort((a, b) => sign * compareBy(op.sortTarget, a, b));
}

function compareBy(target: RangeOp['sortTarget'], a: KeyValue, b: KeyValue): number {
  switch (target) {
    case 'key':
      return compareBytes(a.key, b.key);
    case 'value':
      return compareBytes(a.value, b.value);
    case 'version':
      return a.version - b.version;
    case 'create':
      return a.createRevision - b.createRevision;
    case 'mod':
      return a.modRevision - b.modRevision;
  }
}

/** Whether one version satisfies a comparison; an absent key compares as all zeros, and never by value. */
export function compareHolds(compare: KeyCompare, kv: ComparedPair | undefined): boolean {
  const target = compare.target;
  if (target.of === 'value') {
    if (kv === undefined) return false;
    return holds(compare.result, compareBytes(kv.value, target.value));
  }
  if (target.of === 'lease') {
    const lease = kv?.lease ?? 0n;
    return holds(compare.result, lease < target.value ? -1 : lease > target.value ? 1 : 0);
  }
  return holds(compare.result, numberOf(target.of, kv) - target.value);
}

function numberOf(of: 'version' | 'create' | 'mod', kv: ComparedPair | undefined): number {
  if (kv === undefined) return 0;
  return of === 'version' ? kv.version : of === 'create' ? kv.createRevision : kv.modRevision;
}

function holds(result: KeyCompare['result'], order: number): boolean {
  switch (result) {
    case 'equal':
      return order === 0;
    case 'notEqual':
      return order !== 0;
    case 'greater':
      return order > 0;
    case 'less':
      return order < 0;
  }
}
