import { type Bytes, binaryString, compareBytes, type Engine, type Row, ServiceError } from '@remora/base';
import type { Compare, KeyRange, KeyValue, RangeOp, RangeResult, Txn } from '@remora/protocol';
import { currentKey, currentSpan, historySpan, parseHistoryKey, userKeyOfCurrent } from './keys.ts';
import { decodeVersion, isDeletion, modRevisionOf, toKeyValue, type Version } from './record.ts';

/**
 * Reading plain keys.
 *
 * K1. What has to be read from cold storage is fetched *before* a command is evaluated (`prefetch`), as of that
 *     moment; evaluation itself is synchronous. Nothing else writes the range meanwhile, so both see one state.
 * K2. A read at revision R sees, per key, the newest version at or below R, and nothing when that is a deletion.
 */

/** Most rows that one operation of a transaction may touch. */
export const OPERATION_ROWS_MAX = 1_000_000;

/** What `prefetch` found, by the operation or comparison that asked. */
export type Prefetched = ReadonlyMap<KeyRange, readonly KeyValue[]>;

export const NOTHING_PREFETCHED: Prefetched = new Map();

export interface RevisionBounds {
  readonly revision: number;
  readonly compactRevision: number;
}

/** Throws COMPACTED or FUTURE_REVISION when `revision` cannot be read. */
export function checkReadRevision(revision: number, bounds: RevisionBounds): void {
  if (revision < 0) throw new ServiceError('INVALID_ARGUMENT', 'a revision cannot be negative');
  if (revision > bounds.revision) {
    throw new ServiceError(
      'FUTURE_REVISION',
      `revision ${revision} is in the future; the newest is ${bounds.revision}`,
      {
        details: { revision: bounds.revision },
      },
    );
  }
  if (revision > 0 && revision < bounds.compactRevision) {
    throw new ServiceError(
      'COMPACTED',
      `revision ${revision} is compacted; the oldest readable is ${bounds.compactRevision}`,
      {
        details: { compactRevision: bounds.compactRevision },
      },
    );
  }
}

/** Fetches what evaluating `txn` may read beyond single current keys; undefined when there is nothing (the hot path). */
export function prefetchTxn(engine: Engine, txn: Txn, bounds: RevisionBounds): Promise<Prefetched> | undefined {
  const wanted: { readonly range: KeyRange; readonly revision: number }[] = [];
  collectTxn(txn, wanted);
  return wanted.length === 0 ? undefined : fetchAll(engine, wanted, bounds);
}

export function prefetchRange(engine: Engine, op: KeyRange & { readonly revision?: number }, bounds: RevisionBounds) {
  const wanted: { readonly range: KeyRange; readonly revision: number }[] = [];
  collect(op, op.revision ?? 0, wanted);
  return wanted.length === 0 ? undefined : fetchAll(engine, wanted, bounds);
}

function collectTxn(txn: Txn, wanted: { readonly range: KeyRange; readonly revision: number }[]): void {
  for (const compare of txn.compare) collect(compare, 0, wanted);
  for (const branch of [txn.success, txn.failure]) {
    for (const op of branch) {
      if (op.type === 'txn') collectTxn(op.txn, wanted);
      else collect(op, op.type === 'range' ? op.revision : 0, wanted);
    }
  }
}

function collect(
  range: KeyRange,
  revision: number,
  wanted: { readonly range: KeyRange; readonly revision: number }[],
): void {
  if (range.end !== undefined || revision > 0) wanted.push({ range, revision });
}

async function fetchAll(
  engine: Engine,
  wanted: readonly { readonly range: KeyRange; readonly revision: number }[],
  bounds: RevisionBounds,
): Promise<Prefetched> {
  const out = new Map<KeyRange, readonly KeyValue[]>();
  for (const { range, revision } of wanted) {
    if (isEmptyRange(range)) out.set(range, []);
    else if (revision > 0 && revision !== bounds.revision) {
      if (revision >= bounds.compactRevision && revision <= bounds.revision) {
        out.set(range, await readAt(engine, range, revision));
      }
    } else out.set(range, toKeyValues(await engine.scan({ ...currentSpan(range), limit: OPERATION_ROWS_MAX + 1 })));
  }
  return out;
}

function isEmptyRange(range: KeyRange): boolean {
  return range.end !== undefined && range.end.length > 0 && compareBytes(range.key, range.end) >= 0;
}

function toKeyValues(rows: readonly Row[]): readonly KeyValue[] {
  if (rows.length > OPERATION_ROWS_MAX) {
    throw new ServiceError(
      'RESOURCE_EXHAUSTED',
      `the range holds more than ${OPERATION_ROWS_MAX} keys; read or delete it in parts`,
    );
  }
  return rows.map((row) => toKeyValue(userKeyOfCurrent(row.key), decodeVersion(row.value)));
}

/** K2 over one consistent view. */
async function readAt(engine: Engine, range: KeyRange, revision: number): Promise<readonly KeyValue[]> {
  const view = engine.view();
  try {
    const found = new Map<string, KeyValue | undefined>();
    for await (const rows of view.scan(historySpan(range))) {
      for (const row of rows) {
        const { key, revision: at } = parseHistoryKey(row.key);
        if (at > revision) continue;
        found.set(binaryString(key), isDeletion(row.value) ? undefined : toKeyValue(key, decodeVersion(row.value)));
      }
    }
    for await (const rows of view.scan(currentSpan(range))) {
      for (const row of rows) {
        if (modRevisionOf(row.value) > revision) continue;
        const key = userKeyOfCurrent(row.key);
        found.set(binaryString(key), toKeyValue(key, decodeVersion(row.value)));
      }
    }
    const kvs: KeyValue[] = [];
    for (const kv of found.values()) if (kv !== undefined) kvs.push(kv);
    return kvs.sort((a, b) => compareBytes(a.key, b.key));
  } finally {
    view.release();
  }
}

export function getCurrent(engine: Engine, key: Bytes): Version | undefined {
  const row = engine.get(currentKey(key));
  return row === undefined ? undefined : decodeVersion(row);
}

/** Filters, sorts and limits, as etcd's Range does: `count` is what the range holds, whatever `limit` says. */
export function shapeRange(op: RangeOp, all: readonly KeyValue[]): RangeResult {
  const kept = hasFilters(op) ? all.filter((kv) => passes(op, kv)) : all;
  if (op.countOnly) return { type: 'range', kvs: [], more: false, count: all.length };
  let kvs = sorted(op, kept);
  const more = op.limit > 0 && kvs.length > op.limit;
  if (more) kvs = kvs.slice(0, op.limit);
  if (op.keysOnly) kvs = kvs.map((kv) => ({ ...kv, value: kv.value.subarray(0, 0) }));
  return { type: 'range', kvs, more, count: all.length };
}

function hasFilters(op: RangeOp): boolean {
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
    // As in etcd, naming a target without an order sorts upwards.
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
export function compareHolds(compare: Compare, kv: Version | undefined): boolean {
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

function numberOf(of: 'version' | 'create' | 'mod', kv: Version | undefined): number {
  if (kv === undefined) return 0;
  return of === 'version' ? kv.version : of === 'create' ? kv.createRevision : kv.modRevision;
}

function holds(result: Compare['result'], order: number): boolean {
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
