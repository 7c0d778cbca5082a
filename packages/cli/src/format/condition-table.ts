import { table } from './table.ts';

/** The table of problems for `check` and `status`. */
export function conditionTable(
  conditions: readonly { readonly severity: string; readonly name: string; readonly text: string }[],
): string {
  return table(
    ['SEVERITY', 'CONDITION', 'WHAT'],
    conditions.map(({ severity, name, text }) => [severity, name, text]),
  );
}
