import { type Bytes, compareBytes, type Engine, type EngineView, ServiceError } from '@remora/base';
import {
  type FoundPairs,
  hasFilters,
  isKeyCompare,
  type KeyRange,
  type KeyValue,
  type RangeOp,
  type Txn,
} from '@remora/protocol';
import { currentKey, currentSpan, userKeyOfCurrent } from '../keys.ts';
import { VersionReader } from './kv-versions.ts';
import { decodeVersion, isDeletion, toKeyValue, type Version } from './record.ts';

/**
 * Reads plain keys.
 *
 * K1. Everything that has to be read from cold storage is fetched *before* a command is evaluated (`prefetch`), as of
 *     that moment; evaluation itself is synchronous. Nothing else writes the range meanwhile, so both see one state. A
 *     query is evaluated over the view that it was fetched from, because the range continues meanwhile.
 * K2. A read at revision R sees, per key, the newest version at or below R, and nothing if that is a deletion.
 */

/** The largest number of keys, and of their bytes, that one operation may return or change. */
export interface OperationLimits {
  readonly rowsMax: number;
  readonly bytesMax: number;
}

/** Equal on every replica: whether a command is applied depends on these limits. */
const OPERATION_LIMITS: OperationLimits = { rowsMax: 1_000_000, bytesMax: 512 * 1024 * 1024 };

interface Kept {
  /** How many of the first pairs are kept; all are counted. */
  readonly keep: number;
  readonly limits: OperationLimits;
}

/** What `prefetch` found, by the operation or comparison that asked for it. */
export type Prefetched = ReadonlyMap<KeyRange, FoundPairs>;

export const NOTHING_PREFETCHED: Prefetched = new Map();
const NOTHING: FoundPairs = { kvs: [], count: 0 };

interface Wanted {
  readonly range: KeyRange;
  readonly revision: number;
}

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

/** Fetches what evaluating `txn` may read beyond single current keys; undefined if there is nothing (the hot path). */
export function prefetchTxn(engine: Engine, txn: Txn, bounds: RevisionBounds): Promise<Prefetched> | undefined {
  return prefetchAll(engine, wantedByTxn(txn), bounds);
}

export function prefetchRange(engine: Engine, op: KeyRange & { readonly revision?: number }, bounds: RevisionBounds) {
  return prefetchAll(engine, wantedByRange(op), bounds);
}

/** The same for the operations of one part of a transaction over several ranges. */
export function prefetchEach(engine: Engine, ranges: readonly KeyRange[], bounds: RevisionBounds) {
  return prefetchAll(engine, ranges.flatMap(wantedByRange), bounds);
}

function prefetchAll(
  engine: Engine,
  wanted: readonly Wanted[],
  bounds: RevisionBounds,
): Promise<Prefetched> | undefined {
  if (wanted.length === 0) return undefined;
  const view = engine.view();
  return fetchAll(view, wanted, { bounds, changing: true }).finally(() => view.release());
}

export function wantedByRange(op: KeyRange & { readonly revision?: number }): readonly Wanted[] {
  const wanted: Wanted[] = [];
  collect(op, op.revision ?? 0, wanted);
  return wanted;
}

export function wantedByTxn(txn: Txn): readonly Wanted[] {
  const wanted: Wanted[] = [];
  collectTxn(txn, wanted);
  return wanted;
}

function collectTxn(txn: Txn, wanted: Wanted[]): void {
  for (const compare of txn.compare) if (isKeyCompare(compare)) collect(compare, 0, wanted);
  for (const branch of [txn.success, txn.failure]) {
    for (const op of branch) {
      if (op.type === 'txn') collectTxn(op.txn, wanted);
      else collect(op, op.type === 'range' ? op.revision : 0, wanted);
    }
  }
}

function collect(range: KeyRange, revision: number, wanted: Wanted[]): void {
  if (range.end !== undefined || revision > 0) wanted.push({ range, revision });
}

/**
 * Fetches from one view. `bounds` are those of the view. While `changing`, everything is fetched whole, because the
 * command's own changes are added; otherwise no more than the operation can return.
 */
export async function fetchAll(
  view: EngineView,
  wanted: readonly Wanted[],
  {
    bounds,
    changing,
    limits = OPERATION_LIMITS,
  }: { readonly bounds: RevisionBounds; readonly changing: boolean; readonly limits?: OperationLimits },
): Promise<Prefetched> {
  const out = new Map<KeyRange, FoundPairs>();
  for (const { range, revision } of wanted) {
    const kept: Kept = { keep: changing ? Number.POSITIVE_INFINITY : rowsNeeded(range), limits };
    if (isEmptyRange(range)) out.set(range, NOTHING);
    else if (revision > 0 && revision !== bounds.revision) {
      if (revision < bounds.compactRevision || revision > bounds.revision) continue; // Evaluation reports it.
      out.set(range, await readAt(view, range, revision, kept));
    } else out.set(range, await readCurrent(view, range, kept));
  }
  return out;
}

function isEmptyRange(range: KeyRange): boolean {
  return range.end !== undefined && range.end.length > 0 && compareBytes(range.key, range.end) >= 0;
}

/** How many of the first rows decide the answer of a read. */
function rowsNeeded(range: KeyRange): number {
  if (!('type' in range)) return Number.POSITIVE_INFINITY;
  const op = range as RangeOp;
  if (op.countOnly) return 0;
  const inKeyOrder = op.sortTarget === 'key' && op.sortOrder !== 'descend' && !hasFilters(op);
  return inKeyOrder && op.limit > 0 ? op.limit + 1 : Number.POSITIVE_INFINITY;
}

async function readCurrent(view: EngineView, range: KeyRange, { keep, limits }: Kept): Promise<FoundPairs> {
  const kvs: KeyValue[] = [];
  let count = 0;
  let bytes = 0;
  for await (const rows of view.scan(currentSpan(range))) {
    count += rows.length;
    for (const row of rows) {
      if (kvs.length >= keep) break;
      bytes = withinBounds(kvs.length, bytes + row.key.length + row.value.length, limits);
      kvs.push(toKeyValue(userKeyOfCurrent(row.key), decodeVersion(row.value)));
    }
  }
  return { kvs, count };
}

function withinBounds(found: number, bytes: number, { rowsMax, bytesMax }: OperationLimits): number {
  if (found < rowsMax && bytes <= bytesMax) return bytes;
  throw new ServiceError(
    'RESOURCE_EXHAUSTED',
    `an operation covers at most ${rowsMax} keys and ${bytesMax} bytes; do it in parts`,
  );
}

/**
 * K2. The limits count found pairs, not older versions: replicas differ in these, because each removes on its own what
 *     a compaction has made unreadable.
 */
async function readAt(
  view: EngineView,
  range: KeyRange,
  revision: number,
  { keep, limits }: Kept,
): Promise<FoundPairs> {
  const reader = new VersionReader(view, range, { older: true });
  const kvs: KeyValue[] = [];
  let count = 0;
  let bytes = 0;
  try {
    for (let key = await reader.nextKey(); key !== undefined; key = await reader.nextKey()) {
      const versions = await reader.versionsOf(key);
      const newest = versions.findLast((version) => version.revision <= revision);
      if (newest === undefined || isDeletion(newest.row)) continue;
      count++;
      if (kvs.length >= keep) continue;
      const kv = toKeyValue(newest.key, decodeVersion(newest.row));
      bytes = withinBounds(kvs.length, bytes + kv.key.length + kv.value.length, limits);
      kvs.push(kv);
    }
  } finally {
    await reader.close();
  }
  return { kvs, count };
}

/** The newest version of a key in an engine or a view of it. */
export function getCurrent(source: Pick<Engine, 'get'>, key: Bytes): Version | undefined {
  const row = source.get(currentKey(key));
  return row === undefined ? undefined : decodeVersion(row);
}
