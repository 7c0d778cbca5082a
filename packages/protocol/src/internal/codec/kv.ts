import { type Bytes, unreachable } from '@remora/base';
import {
  type Compare,
  type DeleteOp,
  isLockCompare,
  type KeyCompare,
  type KeyValue,
  type KvEvent,
  type KvOp,
  type KvResult,
  type LockCompare,
  type PutOp,
  type RangeOp,
  type Txn,
} from '../kv-types.ts';
import {
  asBool,
  asBytes,
  asCount,
  asFields,
  asLease,
  asList,
  asText,
  invalid,
  leaseToWire,
  wireWords,
} from './check.ts';

/**
 * Key-value operations and results. A union travels as `[tag, ...fields]`; tags and positions are the wire and disk
 * format, so they are only ever appended to, under a new format version.
 */
const OP = { range: 0, put: 1, delete: 2, txn: 3 } as const;

/** Transactions inside transactions: etcd allows a few levels; deeper input is refused before it can exhaust the stack. */
export const TXN_DEPTH_MAX = 8;

const SORT_ORDERS = wireWords('sort order', ['none', 'ascend', 'descend']);
const SORT_TARGETS = wireWords('sort target', ['key', 'version', 'create', 'mod', 'value']);
const COMPARE_RESULTS = wireWords('compare result', ['equal', 'greater', 'less', 'notEqual']);
/** A comparison of a lock begins with it, where others have their key. */
const OF_LOCK = 0;
const COMPARE_TARGETS = wireWords('compare target', ['version', 'create', 'mod', 'lease', 'value']);

/** Absent (one key) travels as null; present and empty means "to the last key". */
function endToWire(end: Bytes | undefined): Bytes | null {
  return end ?? null;
}

function keyRange(key: unknown, end: unknown): { key: Bytes; end?: Bytes } {
  const checked = asBytes(key, 'key');
  return end === null ? { key: checked } : { key: checked, end: asBytes(end, 'range end') };
}

export function encodeRangeOp(op: RangeOp): unknown[] {
  return [
    OP.range,
    op.key,
    endToWire(op.end),
    op.limit,
    op.revision,
    SORT_ORDERS.encode(op.sortOrder),
    SORT_TARGETS.encode(op.sortTarget),
    (op.keysOnly ? 1 : 0) | (op.countOnly ? 2 : 0),
    op.minModRevision,
    op.maxModRevision,
    op.minCreateRevision,
    op.maxCreateRevision,
  ];
}

export function decodeRangeOp(raw: unknown): RangeOp {
  const f = asFields(raw, 12, 'range op');
  if (f[0] !== OP.range) throw invalid('range op');
  const flags = asFlags(f[7], 3, 'range flags');
  return {
    type: 'range',
    ...keyRange(f[1], f[2]),
    limit: asCount(f[3], 'limit'),
    revision: asCount(f[4], 'revision'),
    sortOrder: SORT_ORDERS.decode(f[5]),
    sortTarget: SORT_TARGETS.decode(f[6]),
    keysOnly: (flags & 1) !== 0,
    countOnly: (flags & 2) !== 0,
    minModRevision: asCount(f[8], 'minModRevision'),
    maxModRevision: asCount(f[9], 'maxModRevision'),
    minCreateRevision: asCount(f[10], 'minCreateRevision'),
    maxCreateRevision: asCount(f[11], 'maxCreateRevision'),
  };
}

function asFlags(raw: unknown, max: number, what: string): number {
  const flags = asCount(raw, what);
  if (flags > max) throw invalid(what);
  return flags;
}

function encodePutOp(op: PutOp): unknown[] {
  const flags = (op.prevKv ? 1 : 0) | (op.ignoreValue ? 2 : 0) | (op.ignoreLease ? 4 : 0);
  return [OP.put, op.key, op.value, leaseToWire(op.lease), flags];
}

function decodePutOp(raw: unknown): PutOp {
  const f = asFields(raw, 5, 'put op');
  const flags = asFlags(f[4], 7, 'put flags');
  return {
    type: 'put',
    key: asBytes(f[1], 'key'),
    value: asBytes(f[2], 'value'),
    lease: asLease(f[3], 'lease'),
    prevKv: (flags & 1) !== 0,
    ignoreValue: (flags & 2) !== 0,
    ignoreLease: (flags & 4) !== 0,
  };
}

function decodeDeleteOp(raw: unknown): DeleteOp {
  const f = asFields(raw, 4, 'delete op');
  return { type: 'delete', ...keyRange(f[1], f[2]), prevKv: asBool(f[3], 'prevKv') };
}

export function encodeKvOp(op: KvOp): unknown[] {
  switch (op.type) {
    case 'put':
      return encodePutOp(op);
    case 'range':
      return encodeRangeOp(op);
    case 'delete':
      return [OP.delete, op.key, endToWire(op.end), op.prevKv];
    case 'txn':
      return [OP.txn, encodeTxn(op.txn)];
    default:
      return unreachable(op);
  }
}

export function decodeKvOp(raw: unknown, depth = 0): KvOp {
  if (!Array.isArray(raw)) throw invalid('operation');
  switch (raw[0]) {
    case OP.put:
      return decodePutOp(raw);
    case OP.range:
      return decodeRangeOp(raw);
    case OP.delete:
      return decodeDeleteOp(raw);
    case OP.txn:
      return { type: 'txn', txn: decodeTxn(asFields(raw, 2, 'txn op')[1], depth + 1) };
    default:
      throw invalid('operation tag');
  }
}

export function encodeCompare(compare: Compare): unknown[] {
  if (isLockCompare(compare)) return [OF_LOCK, compare.lock.namespace, compare.lock.name, compare.version];
  const { target } = compare;
  const value = target.of === 'lease' ? leaseToWire(target.value) : target.value;
  return [
    compare.key,
    endToWire(compare.end),
    COMPARE_RESULTS.encode(compare.result),
    COMPARE_TARGETS.encode(target.of),
    value,
  ];
}

export function decodeCompare(raw: unknown): Compare {
  return Array.isArray(raw) && raw[0] === OF_LOCK ? decodeLockCompare(raw) : decodeKeyCompare(raw);
}

function decodeLockCompare(raw: unknown): LockCompare {
  const f = asFields(raw, 4, 'compare of a lock');
  const lock = { namespace: asText(f[1], 'compare.namespace'), name: asBytes(f[2], 'compare.name') };
  return { lock, version: asCount(f[3], 'compare.version') };
}

function decodeKeyCompare(raw: unknown): KeyCompare {
  const f = asFields(raw, 5, 'compare');
  return { ...keyRange(f[0], f[1]), result: COMPARE_RESULTS.decode(f[2]), target: decodeTarget(f[3], f[4]) };
}

function decodeTarget(of: unknown, value: unknown): KeyCompare['target'] {
  const word = COMPARE_TARGETS.decode(of);
  switch (word) {
    case 'lease':
      return { of: word, value: asLease(value, 'compare lease') };
    case 'value':
      return { of: word, value: asBytes(value, 'compare value') };
    default:
      return { of: word, value: asCount(value, 'compare number') };
  }
}

export function encodeTxn(txn: Txn): unknown[] {
  return [txn.compare.map(encodeCompare), txn.success.map(encodeKvOp), txn.failure.map(encodeKvOp)];
}

export function decodeTxn(raw: unknown, depth = 0): Txn {
  if (depth > TXN_DEPTH_MAX) throw invalid('transactions nested too deep');
  const f = asFields(raw, 3, 'txn');
  return {
    compare: asList(f[0], 'txn.compare', decodeCompare),
    success: asList(f[1], 'txn.success', (op) => decodeKvOp(op, depth)),
    failure: asList(f[2], 'txn.failure', (op) => decodeKvOp(op, depth)),
  };
}

export function encodeKeyValue(kv: KeyValue): unknown[] {
  return [kv.key, kv.value, kv.createRevision, kv.modRevision, kv.version, leaseToWire(kv.lease)];
}

export function decodeKeyValue(raw: unknown): KeyValue {
  const f = asFields(raw, 6, 'key value');
  return {
    key: asBytes(f[0], 'kv.key'),
    value: asBytes(f[1], 'kv.value'),
    createRevision: asCount(f[2], 'kv.createRevision'),
    modRevision: asCount(f[3], 'kv.modRevision'),
    version: asCount(f[4], 'kv.version'),
    lease: asLease(f[5], 'kv.lease'),
  };
}

export function encodeKvResult(result: KvResult): unknown[] {
  switch (result.type) {
    case 'put':
      return [OP.put, result.prev === undefined ? null : encodeKeyValue(result.prev)];
    case 'range':
      return [OP.range, result.kvs.map(encodeKeyValue), result.more, result.count];
    case 'delete':
      return [OP.delete, result.deleted, result.prev.map(encodeKeyValue)];
    case 'txn':
      return [OP.txn, result.succeeded, result.results.map(encodeKvResult)];
    default:
      return unreachable(result);
  }
}

export function decodeKvResult(raw: unknown, depth = 0): KvResult {
  if (!Array.isArray(raw) || depth > TXN_DEPTH_MAX + 1) throw invalid('kv result');
  switch (raw[0]) {
    case OP.put: {
      const f = asFields(raw, 2, 'put result');
      return { type: 'put', prev: f[1] === null ? undefined : decodeKeyValue(f[1]) };
    }
    case OP.range: {
      const f = asFields(raw, 4, 'range result');
      return {
        type: 'range',
        kvs: asList(f[1], 'kvs', decodeKeyValue),
        more: asBool(f[2], 'more'),
        count: asCount(f[3], 'count'),
      };
    }
    case OP.delete: {
      const f = asFields(raw, 3, 'delete result');
      return { type: 'delete', deleted: asCount(f[1], 'deleted'), prev: asList(f[2], 'prev', decodeKeyValue) };
    }
    case OP.txn: {
      const f = asFields(raw, 3, 'txn result');
      const results = asList(f[2], 'txn results', (item) => decodeKvResult(item, depth + 1));
      return { type: 'txn', succeeded: asBool(f[1], 'succeeded'), results };
    }
    default:
      throw invalid('kv result tag');
  }
}

export function encodeKvEvent(event: KvEvent): unknown[] {
  const prev = event.prev === undefined ? null : encodeKeyValue(event.prev);
  return [event.type === 'put' ? 0 : 1, encodeKeyValue(event.kv), prev];
}

export function decodeKvEvent(raw: unknown): KvEvent {
  const f = asFields(raw, 3, 'event');
  if (f[0] !== 0 && f[0] !== 1) throw invalid('event type');
  const event = { type: f[0] === 0 ? 'put' : 'delete', kv: decodeKeyValue(f[1]) } as const;
  return f[2] === null ? event : { ...event, prev: decodeKeyValue(f[2]) };
}
