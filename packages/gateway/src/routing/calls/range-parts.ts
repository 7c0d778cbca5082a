/** Reads that are cut at the borders of ranges, and put together again. */
import { compareBytes, type Span } from '@remora/base';
import { type RangeOp, type RangeResult, shapeRange } from '@remora/protocol';
import { plainKeys } from '../routes/request-keys.ts';

/** What of a read concerns the keys of a span, in routing keys. */
export interface ReadPart {
  readonly op: RangeOp;
  readonly span: Span;
}

/** The part of a read that has the keys of `span`, which lies within the whole's. */
export function cut({ op, span: whole }: ReadPart, span: Span): ReadPart {
  if (compareBytes(whole.start, span.start) === 0 && compareBytes(whole.end, span.end) === 0) return { op, span };
  // Values that decide the order of the whole have to come along.
  const keysOnly = op.keysOnly && op.sortTarget !== 'value';
  return { op: { ...op, ...plainKeys(span), keysOnly }, span };
}

/**
 * The answer to a read from those to its parts, in the order of keys. Each part may leave out what is above its limit:
 * the first of the whole are among the first of each.
 */
export function joined(op: RangeOp, parts: readonly RangeResult[]): RangeResult {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const whole = shapeRange(op, { kvs: parts.flatMap(({ kvs }) => kvs), count });
  return { ...whole, more: whole.more || parts.some(({ more }) => more) };
}

/** Whether the answer is in the order of keys, so that its first pairs are in the first ranges: of all, or from the end. */
export function keyOrder({ sortTarget, sortOrder }: RangeOp): 'ascending' | 'descending' | undefined {
  if (sortTarget !== 'key') return undefined;
  return sortOrder === 'descend' ? 'descending' : 'ascending';
}
