/** Places of the key visualizer: time from left to right, keys from top to bottom. */
import type { HeatJson } from '@remora/gateway/http/json/history';

/** A minute of a column of keys. */
export interface Cell {
  readonly time: number;
  /** Places. */
  readonly from: string;
  readonly to: string;
  /** In this minute. */
  readonly value: number;
}

type Matrix = Pick<HeatJson, 'times' | 'borders' | 'values'>;

export function columnsOf({ borders }: Matrix): number {
  return Math.max(0, borders.length - 1);
}

export function columnAt(matrix: Matrix, share: number): number {
  const columns = columnsOf(matrix);
  return Math.max(0, Math.min(columns - 1, Math.floor(share * columns)));
}

/** Undefined: there is no such minute or column. */
function cellOf({ times, borders, values }: Matrix, line: number, column: number): Cell | undefined {
  const [time, from, to] = [times[line], borders[column], borders[column + 1]];
  if (time === undefined || from === undefined || to === undefined) return undefined;
  return { time, from, to, value: values[line]?.[column] ?? 0 };
}

/**
 * The hottest cell of a minute near a place, as shares of the width and the height: a row of few pixels is hard to hit.
 * `reach`: how far it may be away, as a share of the height.
 */
export function cellNear(matrix: Matrix, x: number, y: number, reach: number): Cell | undefined {
  const line = Math.max(0, Math.min(matrix.times.length - 1, Math.floor(x * matrix.times.length)));
  const pointed = columnAt(matrix, y);
  let best = cellOf(matrix, line, pointed);
  let distance = 0;
  for (let column = columnAt(matrix, y - reach); column <= columnAt(matrix, y + reach); column++) {
    const cell = cellOf(matrix, line, column);
    if (cell === undefined || best === undefined) continue;
    const isNearer = Math.abs(column - pointed) < distance;
    if (cell.value < best.value || (cell.value === best.value && !isNearer)) continue;
    best = cell;
    distance = Math.abs(column - pointed);
  }
  return best;
}

/** A step by keyboard: to another minute, or to the next column with load in any minute. */
export function cellBeside(matrix: Matrix, { time, from }: Pick<Cell, 'time' | 'from'>, step: Step): Cell | undefined {
  const line = matrix.times.indexOf(time);
  const column = matrix.borders.indexOf(from);
  if (line < 0 || column < 0) return firstCell(matrix);
  if (step.lines !== undefined) return cellOf(matrix, line + step.lines, column);
  for (let at = column + step.columns; at >= 0 && at < columnsOf(matrix); at += step.columns) {
    if (matrix.values.some((row) => (row?.[at] ?? 0) > 0)) return cellOf(matrix, line, at);
  }
  return undefined;
}

export type Step =
  | { readonly lines: 1 | -1; readonly columns?: never }
  | { readonly columns: 1 | -1; readonly lines?: never };

/** The hottest cell of the last minute that is known: where the keyboard begins. */
export function firstCell(matrix: Matrix): Cell | undefined {
  const line = matrix.values.findLastIndex((row) => row !== null);
  const row = matrix.values[line] ?? [];
  return cellOf(matrix, line, row.indexOf(Math.max(...row)));
}

export interface HotSpan {
  readonly from: string;
  readonly to: string;
  readonly perS: number;
}

/** The columns with most load in the last minutes of the matrix that are known, the hottest first. */
export function hottest(matrix: Matrix & Pick<HeatJson, 'stepMs'>, minutes: number, most: number): readonly HotSpan[] {
  const rows = matrix.values.filter((row) => row !== null).slice(-minutes);
  const seconds = (rows.length * matrix.stepMs) / 1_000;
  return Array.from({ length: columnsOf(matrix) }, (_, column) => ({
    from: matrix.borders[column] ?? '',
    to: matrix.borders[column + 1] ?? '',
    perS: rows.reduce((sum, row) => sum + (row[column] ?? 0), 0) / seconds,
  }))
    .filter(({ perS }) => perS > 0)
    .sort((a, b) => b.perS - a.perS)
    .slice(0, most);
}

/** All load of a matrix. */
export function totalOf({ values }: Matrix): number {
  return values.reduce((sum, row) => sum + (row ?? []).reduce((part, value) => part + value, 0), 0);
}
