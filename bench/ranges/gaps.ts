export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The longest time from one success to the next, of those with some of the given time in between. Behind the last
 * success only the given time counts: nobody may have asked any more.
 */
export function longestGap(successes: readonly number[], { fromMs, toMs }: TimeSpan): number {
  let longestMs = 0;
  let before = successes[0] ?? fromMs;
  for (const at of successes) {
    if (at >= fromMs && before <= toMs) longestMs = Math.max(longestMs, at - before);
    before = at;
  }
  return Math.max(longestMs, toMs - before);
}
