/**
 * Sets of keys, as spans that do not overlap, in order. Spans that were added separately stay separate: each is
 * processed by itself. Ends are never empty: unbounded spans are cut to the key spaces first (`attachableSpan`).
 */
import { assert, type Bytes, compareBytes, copyBytes, type Span, spanContains } from '@remora/base';
import { intersection } from './bounds.ts';

export type SpanSet = readonly Span[];

export const NO_SPANS: SpanSet = [];

export function hasKey(set: SpanSet, key: Bytes): boolean {
  return set.some((span) => spanContains(span, key));
}

/** Whether all keys of a span are in the set. */
export function hasSpan(set: SpanSet, span: Span): boolean {
  return set.reduce((left: SpanSet, other) => minusSpan(left, other), [span]).length === 0;
}

/** Returns the set with a further span; the same set if the span adds nothing. */
export function plusSpan(set: SpanSet, span: Span): SpanSet {
  assert(span.end.length > 0, 'spans of a set end somewhere');
  if (hasSpan(set, span)) return set;
  const own = { start: copyBytes(span.start), end: copyBytes(span.end) };
  return [...minusSpan(set, span), own].sort((a, b) => compareBytes(a.start, b.start));
}

export function minusSpan(set: SpanSet, { start, end }: Span): SpanSet {
  return set.flatMap((span) => {
    if (intersection(span, { start, end }) === undefined) return [span];
    const before = { start: span.start, end: start };
    const behind = { start: end, end: span.end };
    return [before, behind].filter((part) => compareBytes(part.start, part.end) < 0);
  });
}

/** The part of a set within a span. */
export function withinSpan(set: SpanSet, span: Span): SpanSet {
  return set.flatMap((one) => intersection(one, span) ?? []);
}
