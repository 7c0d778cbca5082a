/**
 * Estimates a quantile from the counts of a histogram, as Prometheus does: evenly spread within a bucket. `counts` has
 * one more number than `bounds`: for values above all of them, which are taken for the last bound. Undefined if
 * nothing was counted.
 */
export function quantile(q: number, bounds: readonly number[], counts: readonly number[]): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return undefined;
  const rank = q * total;
  let seen = 0;
  for (const [i, bound] of bounds.entries()) {
    const count = counts[i] ?? 0;
    if (count > 0 && seen + count >= rank) {
      const low = bounds[i - 1] ?? 0;
      return low + ((bound - low) * Math.max(0, rank - seen)) / count;
    }
    seen += count;
  }
  return bounds.at(-1);
}
