import { type Bytes, compareBytes, copyBytes, keyAfter, type Span, spanContains } from '@remora/base';
import { lockPrefix, lockSpan } from '@remora/lock';
import {
  type Compare,
  isLockCompare,
  type KeyRange,
  KV_SPACE,
  kvRoutingKey,
  type PartOp,
  type Row,
  schema,
  storedRow,
  TXN_PART,
  TxnCommit,
  TxnId,
  type TxnPart,
  type TxnPrepare,
  TxnSpans,
} from '@remora/protocol';
import { hullOf, lowerEnd, type RangeBounds } from '../state/bounds.ts';

/** A part of a transaction over several ranges that a range has prepared and not resolved. */
export interface PreparedPart extends TxnPart {
  readonly txnId: string;
  readonly part: number;
  /** The id of the client's request. */
  readonly requestId: string;
  readonly primaryKey: Bytes;
  /** The deadline of the client's request, in the time of the range. */
  readonly deadlineMs: number;
  readonly expiresMs: number;
  /** The last revision of the range when it was prepared. */
  readonly floor: number;
}

/** The record of a transaction, in the range of its primary key. It is gone when the transaction is aborted. */
export interface TxnRecord {
  readonly txnId: string;
  readonly primaryKey: Bytes;
  readonly requestId: string;
  readonly expiresMs: number;
  /**
   * Spans of routing keys: where each part may lie, in the order of the parts. Only part 0 until the transaction is
   * committed.
   */
  readonly spans: readonly Span[];
  /** Undefined while the transaction is pending. */
  readonly commit: TxnCommit | undefined;
}

/** The transactions that a range hands over to another one, in a split or a merge. */
export interface HandedTransactions {
  readonly parts: readonly PreparedPart[];
  readonly records: readonly TxnRecord[];
}

/** Copies what is retained of a command, because the command's bytes belong to a log entry. */
export function preparedPart(command: TxnPrepare, deadlineMs: number, floor: number): PreparedPart {
  const { txnId, part, requestId, expiresMs } = command;
  return {
    ...{ txnId, part, requestId, deadlineMs, expiresMs, floor },
    primaryKey: copyBytes(command.primaryKey),
    compares: command.compares.map(ownCompare),
    ops: command.ops.map(({ number, branch, op }) => ({ number, branch, op: ownOp(op) })),
  };
}

function ownRange<T extends KeyRange>(range: T): T {
  const own = { ...range, key: copyBytes(range.key) };
  return range.end === undefined ? own : { ...own, end: copyBytes(range.end) };
}

function ownCompare(compare: Compare): Compare {
  if (isLockCompare(compare)) {
    const { lock, version } = compare;
    return { lock: { ...lock, name: copyBytes(lock.name) }, version };
  }
  const { target } = compare;
  const own = ownRange(compare);
  return target.of === 'value' ? { ...own, target: { of: 'value', value: copyBytes(target.value) } } : own;
}

function ownOp(op: PartOp['op']): PartOp['op'] {
  const own = ownRange(op);
  return own.type === 'put' ? { ...own, value: copyBytes(own.value) } : own;
}

/** The bounds by which a part is cut: the routing keys of locks, and plain keys. */
export type PartBounds = Pick<RangeBounds, 'routed' | 'keys'>;

/** Returns the piece of a part within the bounds of a range; undefined if the piece is empty. */
export function cutPart(part: PreparedPart, bounds: PartBounds): PreparedPart | undefined {
  const compares = part.compares.flatMap((compare) => cutCompare(compare, bounds) ?? []);
  const ops = part.ops.flatMap(({ number, branch, op }) => {
    const cut = cutRange(op, bounds);
    return cut === undefined ? [] : [{ number, branch, op: cut }];
  });
  return compares.length + ops.length === 0 ? undefined : { ...part, compares, ops };
}

function cutCompare(compare: Compare, bounds: PartBounds): Compare | undefined {
  if (!isLockCompare(compare)) return cutRange(compare, bounds);
  return spanContains(bounds.routed, lockPrefix(compare.lock)) ? compare : undefined;
}

/** An empty range stays with its first key. */
function cutRange<T extends KeyRange>(range: T, { keys }: PartBounds): T | undefined {
  if (keys === undefined) return undefined;
  const { key, end } = range;
  if (end === undefined) return spanContains(keys, key) ? range : undefined;
  if (isEmptyRange(range)) return spanContains(keys, key) ? range : undefined;
  const from = compareBytes(key, keys.start) < 0 ? keys.start : key;
  const cut = { ...range, key: from, end: lowerEnd(end, keys.end) };
  return isEmptyRange(cut) ? undefined : cut;
}

/** Whether a range is empty: it has an end, and the end is not behind its first key. */
export function isEmptyRange({ key, end }: KeyRange): boolean {
  return end !== undefined && end.length > 0 && compareBytes(key, end) >= 0;
}

/** Joins two pieces of one part that a split had separated. */
export function joinPieces(a: PreparedPart, b: PreparedPart): PreparedPart {
  const ops = [...a.ops, ...b.ops].sort((one, other) => one.number - other.number);
  return { ...a, floor: Math.max(a.floor, b.floor), compares: [...a.compares, ...b.compares], ops };
}

/** The smallest span of routing keys that contains the whole part. */
export function spanOfPart({ compares, ops, primaryKey }: PreparedPart): Span {
  const spans = [...compares.map(comparedSpan), ...ops.map(({ op }) => routedSpan(op))];
  const [first, ...more] = spans;
  return first === undefined ? { start: primaryKey, end: keyAfter(primaryKey) } : more.reduce(hullOf, first);
}

function comparedSpan(compare: Compare): Span {
  return isLockCompare(compare) ? lockSpan(compare.lock) : routedSpan(compare);
}

function routedSpan(range: KeyRange): Span {
  const start = kvRoutingKey(range.key);
  if (range.end === undefined || isEmptyRange(range)) return { start, end: keyAfter(start) };
  return { start, end: range.end.length === 0 ? AFTER_KEYS : kvRoutingKey(range.end) };
}

const AFTER_KEYS = Buffer.from([KV_SPACE + 1]);

const { bytes, field, ms, optional, struct, text, uint } = schema;

const PART_ROW = storedRow(
  'a prepared part',
  struct('prepared part', {
    txnId: field(TxnId, 'The attempt at the transaction.'),
    part: field(uint, 'The number of the part.'),
    requestId: field(text, "The id of the client's request."),
    primaryKey: field(bytes, 'A routing key of part 0.'),
    deadlineMs: field(ms, "The deadline of the client's request, in the time of the range."),
    expiresMs: field(ms, 'The time from which on any gateway may settle it.'),
    floor: field(uint, 'The last revision of the range when it was prepared.'),
    ...TXN_PART,
  }),
  { 1: 9 },
);
/** Both throw an `InvariantError` for anything else. */
export const { encode: encodePart, decode: decodePart } = PART_ROW satisfies Row<PreparedPart>;

const RECORD_ROW = storedRow(
  'a record of a transaction',
  struct('record of a transaction', {
    txnId: field(TxnId, 'The attempt at the transaction.'),
    primaryKey: field(bytes, 'A routing key of part 0.'),
    requestId: field(text, "The id of the client's request."),
    expiresMs: field(ms, 'The time from which on any gateway may abort it.'),
    spans: field(TxnSpans, 'Where each part may lie; only part 0 until it is committed.'),
    commit: field(optional(TxnCommit), 'What it committed with; absent while it is pending.'),
  }),
  { 1: 6 },
);
export const { encode: encodeRecord, decode: decodeRecord } = RECORD_ROW satisfies Row<TxnRecord>;
