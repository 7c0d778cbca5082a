/**
 * Which range has which keys, from all descriptors learned so far.
 *
 * RM1. The ranges to which a key belongs over time have growing versions: splits and merges raise them above those of
 *      all ranges that they change. Descriptors of one range and version have growing `confVersion`s. So of two
 *      descriptors that contain a key, the one with the higher epoch is the later one, whichever was learned first.
 * RM2. A range has no keys except those in its latest descriptor. If two ranges claim a key, the later descriptor wins.
 *      So a range may be known for a part of its keys only, as others have moved away since; keys that have moved to an
 *      unknown range are in a hole.
 * RM3. Routes are sorted, do not overlap, and have an end above their start. There may be holes between them.
 */
import { type Bytes, compareBytes, copyBytes, type Span } from '@remora/base';
import type { Epoch, RangeDescriptor } from '@remora/protocol';

/** A span of keys and the range that has them. Its descriptor may contain more keys. */
export interface Route extends Span {
  readonly range: RangeDescriptor;
}

export class RouteMap {
  readonly #routes: Route[] = [];
  /** The latest epoch learned for each range (RM2). */
  readonly #epochs = new Map<number, Epoch>();

  get routes(): readonly Route[] {
    return this.#routes;
  }

  /** The range that has all keys, if one has; by RM3 it is the only route. */
  get whole(): RangeDescriptor | undefined {
    const first = this.#routes[0];
    return first?.start.length === 0 && first.end.length === 0 ? first.range : undefined;
  }

  find(key: Bytes): RangeDescriptor | undefined {
    const route = this.#routes[this.#firstEndingAbove(key)];
    return route !== undefined && compareBytes(route.start, key) <= 0 ? route.range : undefined;
  }

  /** Returns the parts of a span in the order of keys; undefined if the range of any key in it is unknown. */
  covering(span: Span): readonly Route[] | undefined {
    const parts: Route[] = [];
    let at = span.start;
    for (let i = this.#firstEndingAbove(at); ; i++) {
      const route = this.#routes[i];
      if (route === undefined || compareBytes(route.start, at) > 0) return undefined;
      const last = route.end.length === 0 || (span.end.length > 0 && compareBytes(route.end, span.end) >= 0);
      parts.push({ start: at, end: last ? span.end : route.end, range: route.range });
      if (last) return parts;
      at = route.end;
    }
  }

  /** RM2. Returns true if anything was new. */
  learn(ranges: readonly RangeDescriptor[]): boolean {
    let changed = false;
    for (const range of ranges) changed = this.#learn(range) || changed;
    return changed;
  }

  /** Forgets ranges that have no keys any more; a late descriptor of one does no lasting harm. */
  forgetEnded(): void {
    const ids = new Set(this.#routes.map(({ range }) => range.rangeId));
    for (const rangeId of this.#epochs.keys()) if (!ids.has(rangeId)) this.#epochs.delete(rangeId);
  }

  #learn(range: RangeDescriptor): boolean {
    const known = this.#epochs.get(range.rangeId);
    if (known === undefined || isLater(range.epoch, known)) {
      this.#epochs.set(range.rangeId, range.epoch);
      if (known !== undefined) this.#drop(range.rangeId);
    } else if (isLater(known, range.epoch)) return false;
    return this.#paint(range);
  }

  /** Removes the routes of a range that earlier descriptors have made. */
  #drop(rangeId: number): void {
    for (let i = this.#routes.length - 1; i >= 0; i--) {
      if (this.#routes[i]?.range.rangeId === rangeId) this.#routes.splice(i, 1);
    }
  }

  #paint(range: RangeDescriptor): boolean {
    const from = this.#firstEndingAbove(range.start);
    if (this.#isRoute(this.#routes[from], range)) return false;
    let to = from;
    while (to < this.#routes.length && endsAbove(range, this.#routes[to]?.start ?? range.start)) to++;
    // A copy: the descriptor's keys are slices of the frame that they came in.
    const own = { ...range, start: copyBytes(range.start), end: copyBytes(range.end) };
    const known = this.#routes.slice(from, to);
    const painted = paint(known, own);
    if (painted.length === known.length && painted.every((route, i) => route === known[i])) return false;
    this.#routes.splice(from, to - from, ...painted);
    return true;
  }

  /** Whether the range is known already, with all its keys: by far the most common case. */
  #isRoute(route: Route | undefined, { rangeId, epoch, start, end }: RangeDescriptor): boolean {
    return (
      route?.range.rangeId === rangeId &&
      !isLater(epoch, route.range.epoch) &&
      compareBytes(route.start, start) === 0 &&
      compareBytes(route.end, end) === 0
    );
  }

  /** The index of the first route that has `key` or keys above it. */
  #firstEndingAbove(key: Bytes): number {
    let low = 0;
    let high = this.#routes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const route = this.#routes[middle];
      if (route !== undefined && !endsAbove(route, key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** RM1. */
function isLater(a: Epoch, b: Epoch): boolean {
  return a.version === b.version ? a.confVersion > b.confVersion : a.version > b.version;
}

function endsAbove({ end }: Span, key: Bytes): boolean {
  return end.length === 0 || compareBytes(end, key) > 0;
}

/**
 * Returns the routes that replace `known`, the routes that overlap `range`. `range` gets the keys of older routes and
 * holes.
 */
function paint(known: readonly Route[], range: RangeDescriptor): readonly Route[] {
  const out: Route[] = [];
  /** The start of the next part of `range`; undefined if there is none. */
  let at: Bytes | undefined = range.start;
  const ours = (end: Bytes): void => {
    if (at !== undefined && (end.length === 0 || compareBytes(at, end) < 0)) out.push({ start: at, end, range });
  };
  for (const route of known) {
    if (isLater(range.epoch, route.range.epoch)) {
      if (compareBytes(route.start, range.start) < 0) out.push({ ...route, end: range.start });
      continue;
    }
    if (route.start.length > 0) ours(route.start);
    out.push(route);
    at = endsAbove(range, route.end) && route.end.length > 0 ? route.end : undefined;
  }
  ours(range.end);
  const last = known.at(-1);
  if (
    last !== undefined &&
    range.end.length > 0 &&
    endsAbove(last, range.end) &&
    isLater(range.epoch, last.range.epoch)
  ) {
    out.push({ ...last, start: range.end });
  }
  return out;
}
