/**
 * Spans of keys, merged: what several permissions allow together.
 *
 * KS1. A span is covered if the union of all permitted spans contains it, even if no single one does, as in etcd
 *      (`server/auth/range_perm_cache.go`). So touching spans are one, and a look-up needs only one of them.
 */
import { type Bytes, compareBytes, keyAfter } from '@remora/base';

export interface KeySpan {
  readonly key: Bytes;
  /** Empty: to the last key. Absent: one key. */
  readonly end?: Bytes;
}

export function isSameSpan(a: KeySpan, b: KeySpan): boolean {
  if (compareBytes(a.key, b.key) !== 0) return false;
  if (a.end === undefined || b.end === undefined) return a.end === b.end;
  return compareBytes(a.end, b.end) === 0;
}

interface Interval {
  readonly start: Bytes;
  /** Empty: unbounded. */
  readonly end: Bytes;
}

export class KeySpans {
  /** In order, and apart from each other (KS1). */
  readonly #intervals: readonly Interval[];

  constructor(spans: readonly KeySpan[]) {
    this.#intervals = merged(spans.map(intervalOf));
  }

  covers(span: KeySpan): boolean {
    const { start, end } = intervalOf(span);
    if (isEmpty({ start, end })) return true;
    const found = this.#lastFrom(start);
    return found !== undefined && !isBefore(found.end, end);
  }

  /** The last interval that begins at the key or before it. */
  #lastFrom(key: Bytes): Interval | undefined {
    let low = 0;
    let high = this.#intervals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareBytes(this.#intervals[middle]?.start ?? key, key) <= 0) low = middle + 1;
      else high = middle;
    }
    return this.#intervals[low - 1];
  }
}

function intervalOf({ key, end }: KeySpan): Interval {
  return { start: key, end: end ?? keyAfter(key) };
}

/** A span whose end is not behind its key holds no key. */
function isEmpty({ start, end }: Interval): boolean {
  return end.length > 0 && compareBytes(end, start) <= 0;
}

/** Whether the first end is before the second; an empty one is behind all others. */
function isBefore(a: Bytes, b: Bytes): boolean {
  if (a.length === 0) return false;
  return b.length === 0 || compareBytes(a, b) < 0;
}

function merged(intervals: readonly Interval[]): readonly Interval[] {
  const inOrder = intervals.filter((each) => !isEmpty(each)).sort((a, b) => compareBytes(a.start, b.start));
  const all: Interval[] = [];
  for (const next of inOrder) {
    const last = all.at(-1);
    if (last === undefined || (last.end.length > 0 && compareBytes(last.end, next.start) < 0)) all.push(next);
    else if (isBefore(last.end, next.end)) all[all.length - 1] = { start: last.start, end: next.end };
  }
  return all;
}
