/**
 * How the revisions of two servers that were asked the same correspond.
 *
 * RM1. A revision at which something changed is *exact*: each has one partner, and the order of the ones is the order
 *      of the others. So equal revisions stay equal, and different ones different, however many numbers a server leaves
 *      out.
 * RM2. A revision in a header names a moment: what changed up to it on one server is what changed up to it on the
 *      other. A server that leaves numbers out may name the same moment by several of them.
 * RM3. One change may be *spread* where a table of differences says so: one revision there, a span of them here, which
 *      no other change shares.
 *
 * Each method returns what contradicts what is known, or undefined, after which the pair is known too.
 */
export interface Pair {
  readonly left: number;
  /** First and last revision of the change on the right; equal but for RM3. */
  readonly low: number;
  readonly high: number;
}

interface Moment {
  readonly left: number;
  low: number;
  high: number;
}

export class RevisionMap {
  readonly #pairs: Pair[] = [];
  /** RM2. In the order of `left`. */
  readonly #moments: Moment[] = [];

  /** All changes in their order. */
  get pairs(): readonly Pair[] {
    return this.#pairs;
  }

  get newest(): Pair | undefined {
    return this.#pairs.at(-1);
  }

  /** RM1. */
  exact(left: number, right: number): string | undefined {
    return this.spread(left, { low: right, high: right });
  }

  /** RM3. A span inside of one that is known says nothing new. */
  spread(left: number, { low, high }: { readonly low: number; readonly high: number }): string | undefined {
    const at = lowerBound(this.#pairs, left);
    const known = this.#pairs[at];
    if (known?.left === left) {
      if (known.low <= low && high <= known.high) return undefined;
      return `${left} is ${textOf(known)} on the right already, not ${textOf({ left, low, high })}`;
    }
    const [before, after] = [this.#pairs[at - 1], known];
    if (before !== undefined && before.high >= low) {
      return `${textOf({ left, low, high })} must be above ${textOf(before)}, the partner of ${before.left}`;
    }
    if (after !== undefined && after.low <= high) {
      return `${textOf({ left, low, high })} must be below ${textOf(after)}, the partner of ${after.left}`;
    }
    const next = lowerBound(this.#moments, left);
    const [earlier, later] = [this.#moments[next - 1], this.#moments[next]];
    if (earlier !== undefined && earlier.high >= low) {
      return `the change ${left}/${low} comes after the moment ${earlier.left}/${earlier.high}`;
    }
    if (later !== undefined && later.low < high) {
      return `the change ${left}/${high} is part of the moment ${later.left}/${later.low}`;
    }
    this.#pairs.splice(at, 0, { left, low, high });
    return undefined;
  }

  /** RM2. */
  moment(left: number, right: number): string | undefined {
    if (left === 0 || right === 0) return left === right ? undefined : 'only one side names a revision';
    const at = lowerBound(this.#pairs, left + 1);
    const [last, next] = [this.#pairs[at - 1], this.#pairs[at]];
    if (last !== undefined && last.high > right) return `the change ${last.left}/${last.high} is part of it`;
    if (next !== undefined && next.low <= right) return `the change ${next.left}/${next.low} comes after it`;
    const place = lowerBound(this.#moments, left);
    const known = this.#moments[place];
    const earlier = this.#moments[place - 1];
    const later = known?.left === left ? this.#moments[place + 1] : known;
    if (earlier !== undefined && earlier.high >= right)
      return `the moment ${earlier.left}/${earlier.high} is before it`;
    if (later !== undefined && later.low <= right) return `the moment ${later.left}/${later.low} is after it`;
    if (known?.left === left) {
      known.low = Math.min(known.low, right);
      known.high = Math.max(known.high, right);
    } else this.#moments.splice(place, 0, { left, low: right, high: right });
    return undefined;
  }

  /** The last change that is part of a moment on the right. */
  changeAt(right: number): Pair | undefined {
    return this.#pairs.findLast(({ high }) => high <= right);
  }
}

/** The place of the first one at or above `left`. */
function lowerBound(all: readonly { readonly left: number }[], left: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((all[middle]?.left ?? 0) < left) low = middle + 1;
    else high = middle;
  }
  return low;
}

function textOf({ low, high }: Pair): string {
  return low === high ? String(low) : `${low} to ${high}`;
}
