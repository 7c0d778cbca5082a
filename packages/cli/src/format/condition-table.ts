import { table } from './table.ts';

interface ShownCondition {
  readonly severity: string;
  readonly name: string;
  readonly text: string;
  readonly advice: string;
}

/** The table of problems for `check` and `status`. What to do comes after the last problem of each kind. */
export function conditionTable(conditions: readonly ShownCondition[]): string {
  const rows = conditions.flatMap(({ severity, name, text, advice }, i) => {
    const row = [severity, name, text];
    return conditions[i + 1]?.name === name ? [row] : [row, ['', '', `-> ${advice}`]];
  });
  return table(['SEVERITY', 'CONDITION', 'WHAT, AND WHAT TO DO'], rows);
}
