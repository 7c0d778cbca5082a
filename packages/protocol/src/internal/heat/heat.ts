/**
 * Load by key: the key space is divided into columns, and each has what was read and written there.
 *
 * HT1. Columns cover the whole key space, without gaps and without overlap. The first begins before all keys, and each
 *      ends where the next one begins.
 * HT2. Whatever is done to columns, the load in all of them together stays the same, but for rounding of floating-point
 *      numbers. Nothing depends on chance: the same input gives the same columns.
 * HT3. Where a column is divided, its load is divided evenly among the parts: nothing is known of its inside.
 * HT4. Where columns are merged to have fewer of them, those with the least load are: a merged column has at most as
 *      much load as the limit that leaves few enough columns, and a hot column stays as narrow as it was.
 */

/** In the order of the values of a column. */
export const HEAT_MEASURES = ['reads', 'readBytes', 'writes', 'writeBytes'] as const;
export type HeatMeasure = (typeof HEAT_MEASURES)[number];
export const MEASURES = HEAT_MEASURES.length;

export interface Heat {
  /** Where each column begins: routing keys as binary strings, in order. The first one is empty. */
  readonly borders: readonly string[];
  /** For each column the value of each measure. */
  readonly values: Float64Array;
}

/** The load of a span of keys. An empty `end` is no bound. */
export interface HeatSpan {
  readonly start: string;
  readonly end: string;
  /** In the order of `HEAT_MEASURES`. */
  readonly values: ArrayLike<number>;
}

export const NO_HEAT: Heat = { borders: [''], values: new Float64Array(MEASURES) };

/** Spans that overlap are cut at the start of the next one; their load stays with their starts. */
export function heatOfSpans(spans: readonly HeatSpan[]): Heat {
  const borders: string[] = [''];
  const values: number[] = [0, 0, 0, 0];
  let end = '';
  let isOpen = false;
  const begin = (border: string): void => {
    if (border === borders[borders.length - 1]) return;
    borders.push(border);
    values.push(0, 0, 0, 0);
  };
  for (const span of [...spans].sort(byStart)) {
    if (isOpen && end !== '' && end < span.start) begin(end);
    begin(span.start);
    const at = values.length - MEASURES;
    for (let m = 0; m < MEASURES; m++) values[at + m] = (values[at + m] ?? 0) + (span.values[m] ?? 0);
    end = span.end;
    isOpen = true;
  }
  if (isOpen && end !== '' && end > (borders[borders.length - 1] ?? '')) begin(end);
  return { borders, values: Float64Array.from(values) };
}

function byStart(a: HeatSpan, b: HeatSpan): number {
  return a.start < b.start ? -1 : a.start > b.start ? 1 : 0;
}

/** The columns that have load. */
export function spansOfHeat({ borders, values }: Heat): readonly HeatSpan[] {
  const spans: HeatSpan[] = [];
  borders.forEach((start, i) => {
    const of = values.subarray(i * MEASURES, (i + 1) * MEASURES);
    if (of.some((value) => value > 0)) spans.push({ start, end: borders[i + 1] ?? '', values: of });
  });
  return spans;
}

/** The load of both. */
export function addedHeat(a: Heat, b: Heat): Heat {
  const borders = unionOf(a.borders, b.borders);
  const values = onBorders(a, borders);
  const other = onBorders(b, borders);
  for (let i = 0; i < values.length; i++) values[i] = (values[i] ?? 0) + (other[i] ?? 0);
  return { borders, values };
}

function unionOf(a: readonly string[], b: readonly string[]): readonly string[] {
  const all: string[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [x, y] = [a[i], b[j]];
    if (y === undefined || (x !== undefined && x <= y)) {
      all.push(x as string);
      if (x === y) j++;
      i++;
    } else {
      all.push(y);
      j++;
    }
  }
  return all;
}

/** The values of the load on other columns, which cover the whole key space too (HT3). */
export function onBorders(heat: Heat, borders: readonly string[]): Float64Array {
  const from = heat.borders;
  const out = new Float64Array(borders.length * MEASURES);
  let first = 0;
  for (let i = 0; i < from.length; i++) {
    const [start, end] = [from[i] as string, from[i + 1]];
    // The column at `first` is the last one that begins at `start` or before it.
    while (first + 1 < borders.length && (borders[first + 1] as string) <= start) first++;
    let last = first;
    while (last + 1 < borders.length && (end === undefined || (borders[last + 1] as string) < end)) last++;
    const parts = last - first + 1;
    for (let m = 0; m < MEASURES; m++) {
      const value = heat.values[i * MEASURES + m] as number;
      if (value === 0) continue;
      for (let at = first; at <= last; at++)
        out[at * MEASURES + m] = (out[at * MEASURES + m] as number) + value / parts;
    }
  }
  return out;
}

/** Halvings of the interval in which the limit of HT4 lies: more than a number of 64 bits can tell apart. */
const HALVINGS = 32;

/**
 * At most `columnsMax` columns (HT4). `weightOf` returns the load of a column; by default all measures count, each by
 * its share.
 */
export function coarsened(heat: Heat, columnsMax: number, weightOf: WeightOf = sharesOf(heat.values)): Heat {
  const count = heat.borders.length;
  if (count <= columnsMax) return heat;
  const weights = Float64Array.from({ length: count }, (_, i) => weightOf(heat.values, i));
  let low = 0;
  let high = weights.reduce((sum, weight) => sum + weight, 0);
  if (columnsWithin(weights, low) > columnsMax) {
    for (let n = 0; n < HALVINGS; n++) {
      const limit = (low + high) / 2;
      if (columnsWithin(weights, limit) > columnsMax) low = limit;
      else high = limit;
    }
  } else high = low;
  return mergedWithin(heat, weights, { limit: high, columnsMax });
}

export type WeightOf = (values: Float64Array, column: number) => number;

/** The load of a column by one measure. */
export function weightOfMeasure(measure: HeatMeasure): WeightOf {
  const m = HEAT_MEASURES.indexOf(measure);
  return (values, column) => values[column * MEASURES + m] ?? 0;
}

function sharesOf(values: Float64Array): WeightOf {
  const totals = [0, 0, 0, 0];
  values.forEach((value, i) => {
    totals[i % MEASURES] = (totals[i % MEASURES] ?? 0) + value;
  });
  return (all, column) => {
    let weight = 0;
    totals.forEach((total, m) => {
      if (total > 0) weight += (all[column * MEASURES + m] ?? 0) / total;
    });
    return weight;
  };
}

/** How many columns there are when neighbours are merged up to a limit. */
function columnsWithin(weights: Float64Array, limit: number): number {
  let columns = 0;
  let sum = Number.POSITIVE_INFINITY;
  for (const weight of weights) {
    sum += weight;
    if (sum <= limit) continue;
    columns++;
    sum = weight;
  }
  return columns;
}

function mergedWithin(
  heat: Heat,
  weights: Float64Array,
  { limit, columnsMax }: { readonly limit: number; readonly columnsMax: number },
): Heat {
  const borders: string[] = [];
  const values = new Float64Array(Math.min(columnsMax, heat.borders.length) * MEASURES);
  let sum = Number.POSITIVE_INFINITY;
  heat.borders.forEach((border, i) => {
    const weight = weights[i] as number;
    sum += weight;
    // The last column takes the rest if rounding has left one column too many.
    if (sum > limit && borders.length < columnsMax) {
      borders.push(border);
      sum = weight;
    }
    const at = (borders.length - 1) * MEASURES;
    for (let m = 0; m < MEASURES; m++) {
      values[at + m] = (values[at + m] as number) + (heat.values[i * MEASURES + m] as number);
    }
  });
  return { borders, values: values.subarray(0, borders.length * MEASURES) };
}
