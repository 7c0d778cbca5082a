/** The tables of planted bugs in docs/testing/planted-bugs.md. A test compares them with the code. */
import type { PlantedBug } from './planted-bug.ts';

const COLUMNS = ['The rule that is broken', 'Breaks', 'Seed', 'Unit test that fails'] as const;

/** The lines of the table. It has a column for the layer if the bugs have one. */
export function plantedTable(bugs: readonly PlantedBug[]): string {
  const head = headOf(bugs);
  const rows = bugs.map(({ layer, rule, properties, seed, faults, caughtBy }) => {
    const test = caughtBy === undefined ? 'none' : `\`${caughtBy.replace(/^packages\/(raft\/src\/)?/, '')}\``;
    const runs = faults === undefined ? `${seed}` : `${seed}: ${faults.join(', ')}`;
    const cells = [rule, properties[0] ?? '', runs, test];
    return rowOf(layer === undefined ? cells : [layer, ...cells]);
  });
  return [head, rowOf(head.split(' | ').map(() => '---')), ...rows].join('\n');
}

/** Returns `text` with the table of these bugs replaced. Throws if `text` has no such table. */
export function withPlantedTable(text: string, bugs: readonly PlantedBug[]): string {
  const before = text.indexOf(`\n${headOf(bugs)}\n`);
  if (before === -1) throw new Error('there is no table of these planted bugs');
  const at = before + 1;
  const end = text.indexOf('\n\n', at);
  return text.slice(0, at) + plantedTable(bugs) + text.slice(end === -1 ? text.length : end);
}

function headOf(bugs: readonly PlantedBug[]): string {
  return rowOf(bugs.some(({ layer }) => layer !== undefined) ? ['Layer', ...COLUMNS] : COLUMNS);
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
