import Table from 'cli-table3';

/** Columns without borders, aligned; for terminals and for `awk` alike. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const none = Object.fromEntries(
    ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
      .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
      .map((name) => [name, name === 'middle' ? '  ' : '']),
  );
  const grid = new Table({
    head: [...head],
    chars: none,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  grid.push(...rows.map((row) => row.map(String)));
  return grid
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
