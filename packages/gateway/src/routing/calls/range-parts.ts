/** Cuts reads at the borders of ranges, and joins their results. */
import { compareBytes, type Span } from '@remora/base';
import { type RangeOp, type RangeResult, shapeRange } from '@remora/protocol';
import { plainKeys } from '../routes/request-keys.ts';

/** The part of a read for the keys of a span, in routing keys. */
export interface ReadPart {
  readonly op: RangeOp;
  readonly span: Span;
}

/** Returns the part of a read for `span`, which lies within the span of the whole. */
export function cut({ op, span: whole }: ReadPart, span: Span): ReadPart {
  if (compareBytes(whole.start, span.start) === 0 && compareBytes(whole.end, span.end) === 0) return { op, span };
  // Values that decide the order of the whole are needed.
  const keysOnly = op.keysOnly && op.sortTarget !== 'value';
  return { op: { ...op, ...plainKeys(span), keysOnly }, span };
}

/**
 * Joins the answers to the parts of a read, in the order of keys. Each part may leave out pairs above its limit: the
 * first pairs of the whole are among the first pairs of the parts.
 */
export function joined(op: RangeOp, parts: readonly RangeResult[]): RangeResult {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const whole = shapeRange(op, { kvs: parts.flatMap(({ kvs }) => kvs), count });
  return { ...whole, more: whole.more || parts.some(({ more }) => more) };
}

/**
 * The direction of an answer in key order, whose first pairs are in the first (or last) ranges; undefined: another
 * order.
 */
export function keyOrder({ sortTarget, sortOrder }: RangeOp): 'ascending' | 'descending' | undefined {
  if (sortTarget !== 'key') return undefined;
  return sortOrder === 'descend' ? 'descending' : 'ascending';
}
