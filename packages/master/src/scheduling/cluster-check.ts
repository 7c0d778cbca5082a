/** Checks that the ranges cover every key exactly once. */
import { type Bytes, compareBytes } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';

/**
 * A span of keys without a range, or with two; an empty `end` is unbounded. It may be temporary while a split is being
 * reported.
 */
export interface CoverageFault {
  readonly type: 'hole' | 'overlap';
  readonly start: Bytes;
  readonly end: Bytes;
  /** The adjacent ranges, or those that overlap. */
  readonly rangeIds: readonly number[];
}

/** `ranges` are in the order of their first keys. */
export function coverageFaults(ranges: Iterable<RangeDescriptor>): readonly CoverageFault[] {
  const faults: CoverageFault[] = [];
  // The end of the covered keys so far, and the range that reaches furthest; initially nothing is covered.
  let reach: { readonly end: Bytes; readonly rangeId: number | undefined } | undefined;
  for (const { rangeId, start, end } of ranges) {
    const order = reach === undefined ? Math.sign(start.length) : compareToEnd(start, reach.end);
    const rangeIds = [...(reach?.rangeId === undefined ? [] : [reach.rangeId]), rangeId];
    if (order > 0) faults.push({ type: 'hole', start: reach?.end ?? new Uint8Array(0), end: start, rangeIds });
    if (order < 0 && reach !== undefined) {
      faults.push({ type: 'overlap', start, end: smallerEnd(end, reach.end), rangeIds });
    }
    if (reach === undefined || compareEnds(end, reach.end) > 0) reach = { end, rangeId };
  }
  if (reach !== undefined && reach.end.length > 0) {
    const rangeIds = reach.rangeId === undefined ? [] : [reach.rangeId];
    faults.push({ type: 'hole', start: reach.end, end: new Uint8Array(0), rangeIds });
  }
  return faults;
}

/** Compares a key with the end of a span. */
function compareToEnd(key: Bytes, end: Bytes): number {
  return end.length === 0 ? -1 : compareBytes(key, end);
}

function compareEnds(a: Bytes, b: Bytes): number {
  if (a.length === 0 || b.length === 0) return Math.sign(b.length) - Math.sign(a.length);
  return compareBytes(a, b);
}

function smallerEnd(a: Bytes, b: Bytes): Bytes {
  return compareEnds(a, b) <= 0 ? a : b;
}
