/** Which rows of a long list are drawn. */
export interface Window {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly above: number;
  readonly below: number;
}

const SPARE_ROWS = 8;

export function windowOf(list: {
  readonly rows: number;
  readonly rowHeight: number;
  readonly scrollTop: number;
  readonly height: number;
}): Window {
  const { rows, rowHeight, scrollTop, height } = list;
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight);
  const visible = Math.ceil(height / rowHeight) + 1;
  const from = Math.max(0, Math.min(first, rows - visible) - SPARE_ROWS);
  const to = Math.min(rows, Math.max(first, 0) + visible + SPARE_ROWS);
  return { from, to, above: from * rowHeight, below: (rows - to) * rowHeight };
}
