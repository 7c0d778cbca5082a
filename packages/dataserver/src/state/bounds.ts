/**
 * Which rows of the engine a range has, from its bounds `[start, end)` in routing keys.
 *
 * B1. Leases, locks and current records lie at their routing keys, so bounds cut them directly. The attachments of a
 *     lease lie behind it and move with it; older versions move with their plain key.
 * B2. Bounds never fall between the rows of a lease or of a lock (`isBorder`), so each lease and each lock is in one
 *     range as a whole.
 */
import { type Bytes, compareBytes, EMPTY_BYTES, type Span } from '@remora/base';
import { lockStart } from '@remora/lock';
import { KV_SPACE, LEASE_SPACE, LOCK_SPACE } from '@remora/protocol';
import { historySpan, LEASE_KEY_BYTES, localSpan } from './keys.ts';

/** The span of all routing keys: that of a range without bounds. */
const ROUTED: Span = { start: Buffer.from([LEASE_SPACE]), end: Buffer.from([KV_SPACE + 1]) };
const ATTACHABLE: Span = { start: Buffer.from([LOCK_SPACE]), end: ROUTED.end };
const NOTHING_ROUTED: Span = { start: ROUTED.end, end: ROUTED.end };

/** Where a range begins and ends, with the spans that follow from it computed once. */
export interface RangeBounds extends Span {
  /** The bounds cover all keys: no comparison is needed. */
  readonly whole: boolean;
  /** The rows that lie at routing keys. */
  readonly routed: Span;
  /** Its plain keys, without their space's byte; undefined when it has none. */
  readonly keys: Span | undefined;
  /** Older versions of those. */
  readonly history: Span | undefined;
}

export function boundsOf({ start, end }: Span): RangeBounds {
  const keys = plainKeys({ start, end });
  return {
    start,
    end,
    keys,
    whole: start.length === 0 && end.length === 0,
    routed: intersection({ start, end }, ROUTED) ?? NOTHING_ROUTED,
    history: keys === undefined ? undefined : historySpan({ key: keys.start, end: keys.end }),
  };
}

/**
 * Every span of the engine that holds data of a range. The range's own rows come last, and its state row is the last of
 * them: when rows are written in this order and the state row exists, the rest is complete.
 */
export function rangeSpans(rangeId: number, span: Span): readonly Span[] {
  const { routed, history } = boundsOf(span);
  const keyed = [routed, ...(history === undefined ? [] : [history])].filter((each) => endsAbove(each, each.start));
  return [...keyed, localSpan(rangeId)];
}

/** The part of a span where keys and locks lie: they may belong to leases. Undefined if the span has only leases. */
export function attachableSpan(span: Span): Span | undefined {
  return intersection(span, ATTACHABLE);
}

function plainKeys({ start, end }: Span): Span | undefined {
  const [first, last] = [start[0] ?? 0, end.length === 0 ? KV_SPACE + 1 : (end[0] ?? 0)];
  if (first > KV_SPACE || last < KV_SPACE || (last === KV_SPACE && end.length === 1)) return undefined;
  return {
    start: first < KV_SPACE ? EMPTY_BYTES : start.subarray(1),
    end: last > KV_SPACE ? EMPTY_BYTES : end.subarray(1),
  };
}

/** Returns the common part; undefined if there is none. */
export function intersection(a: Span, b: Span): Span | undefined {
  const start = compareBytes(a.start, b.start) > 0 ? a.start : b.start;
  const end = lowerEnd(a.end, b.end);
  return end.length > 0 && compareBytes(end, start) <= 0 ? undefined : { start, end };
}

/** Returns the end that comes first; an empty end is behind all others. */
export function lowerEnd(a: Bytes, b: Bytes): Bytes {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
  return compareBytes(a, b) < 0 ? a : b;
}

/** The smallest span that holds both. */
export function hullOf(a: Span, b: Span): Span {
  const start = compareBytes(a.start, b.start) < 0 ? a.start : b.start;
  if (a.end.length === 0 || b.end.length === 0) return { start, end: EMPTY_BYTES };
  return { start, end: compareBytes(a.end, b.end) > 0 ? a.end : b.end };
}

/** Whether two spans have keys in common. */
export function spansOverlap(a: Span, b: Span): boolean {
  return endsAbove(a, b.start) && endsAbove(b, a.start) && endsAbove(a, a.start) && endsAbove(b, b.start);
}

function endsAbove({ end }: Span, key: Bytes): boolean {
  return end.length === 0 || compareBytes(end, key) > 0;
}

/** Whether a range may begin at this routing key: the key is neither within a lease's rows nor within a lock's (B2). */
export function isBorder(key: Bytes): boolean {
  if (key.length === 0) return false;
  const [space = 0] = key;
  if (space === LEASE_SPACE) return key.length <= LEASE_KEY_BYTES;
  if (space === LOCK_SPACE) return (lockStart(key)?.length ?? key.length) === key.length;
  return space === KV_SPACE;
}
