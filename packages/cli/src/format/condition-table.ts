import { table } from './table.ts';

/** What is wrong, as `check` and `status` show it. */
export function conditionTable(
  conditions: readonly { readonly severity: string; readonly name: string; readonly text: string }[],
): string {
  return table(
    ['SEVERITY', 'CONDITION', 'WHAT'],
    conditions.map(({ severity, name, text }) => [severity, name, text]),
  );
}
