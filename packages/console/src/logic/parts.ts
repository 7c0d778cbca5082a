/** Lists that are read part by part. */
export interface Part<Row> {
  readonly rows: readonly Row[];
  /** The cursor of the next part; absent at the end. */
  readonly next?: string | undefined;
}

/** A tab keeps so many rows of a list, some MB. Lists with more are searched instead of read to their end. */
export const ROWS_MAX = 10_000;

/** The rows with those of the next part. A full list has no next part. */
export function joined<Row>(before: readonly Row[], part: Part<Row>): Part<Row> & { readonly isFull: boolean } {
  const rows = [...before, ...part.rows].slice(0, ROWS_MAX);
  const isFull = rows.length === ROWS_MAX && (part.next !== undefined || before.length + part.rows.length > ROWS_MAX);
  return { rows, next: isFull ? undefined : part.next, isFull };
}
