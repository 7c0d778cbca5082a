/** Which lines of many a chart shows: nobody tells 200 of them apart, and drawing them all takes a while. */
export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** As many as there are colours. */
export const LINES_MAX = 8;

/** All lines if they are few; otherwise those with the highest peaks, the highest first, after the median of all. */
export function shownLines(lines: readonly Line[]): readonly Line[] {
  if (lines.length <= LINES_MAX) return lines;
  const highest = lines
    .map((line) => ({ line, peak: Math.max(...line.values.map((value) => value ?? 0)) }))
    .sort((a, b) => b.peak - a.peak)
    .slice(0, LINES_MAX - 1);
  const times = Math.max(...lines.map(({ values }) => values.length));
  const median = Array.from({ length: times }, (_, at) => medianOf(lines.map(({ values }) => values[at] ?? null)));
  return [{ name: `median of ${lines.length}`, values: median }, ...highest.map(({ line }) => line)];
}

/** Of the values that are known. */
function medianOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)] ?? null;
}
