export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The longest time from one success to the next, or to now, of those with some of the given time in between. */
export function longestGap(successes: readonly number[], { fromMs, toMs }: TimeSpan): number {
  let longestMs = 0;
  let before = successes[0] ?? fromMs;
  for (const at of [...successes, performance.now()]) {
    if (at >= fromMs && before <= toMs) longestMs = Math.max(longestMs, at - before);
    before = at;
  }
  return longestMs;
}
