/**
 * Which ranges of a node periodic work has to visit, so that its cost follows what happens and not how many ranges
 * there are.
 *
 * AC1. A range is marked for every reader when its group had a turn, when it applied something, when its leader lost
 *      sight of a member, when it was read while it counted no load, when it has a reason to be split, and when it
 *      begins or ends here.
 * AC2. A reader removes a mark once it has nothing left to do for that range, and not before.
 * AC3. Some changes mark nothing, because they concern all ranges or come with time: another policy, memory for events
 *      that shrinks, versions that become old. So each look also visits a share of the other ranges: all of them within
 *      LOOKS_MAX looks. Up to ALL_MAX ranges, each look visits all.
 */
const ALL_MAX = 64;
const LOOKS_MAX = 30;

export class ActiveRanges {
  readonly #readers: Set<number>[] = [];

  /** The marks of one reader. */
  reader(): Set<number> {
    const marks = new Set<number>();
    this.#readers.push(marks);
    return marks;
  }

  /** AC1. */
  mark(rangeId: number): void {
    for (const marks of this.#readers) marks.add(rangeId);
  }
}

/** In how many looks at `count` ranges each is visited (AC3). */
export function looksFor(count: number): number {
  return Math.max(1, Math.min(LOOKS_MAX, Math.ceil(count / ALL_MAX)));
}
