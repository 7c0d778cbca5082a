/** The table of planted bugs in docs/testing.md, made from sim-mutations.ts; a test compares. */
import type { SimMutation } from './sim-mutations.ts';

const HEAD = ['| The rule that is broken | Breaks | Seed | Unit test that fails |', '| --- | --- | --- | --- |'];

/** The lines of the table. */
export function plantedTable(mutations: readonly SimMutation[]): string {
  const rows = mutations.map(({ rule, properties, foundBy, caughtBy }) => {
    const test = caughtBy === undefined ? 'none' : `\`${caughtBy.replace('packages/raft/src/', '')}\``;
    return `| ${rule} | ${properties[0] ?? ''} | ${foundBy[0]} | ${test} |`;
  });
  return [...HEAD, ...rows].join('\n');
}

/** `text` with its table replaced; throws when it has none. */
export function withPlantedTable(text: string, mutations: readonly SimMutation[]): string {
  const at = text.indexOf(HEAD[0] ?? '');
  if (at === -1) throw new Error('there is no table of planted bugs');
  const end = text.indexOf('\n\n', at);
  return text.slice(0, at) + plantedTable(mutations) + text.slice(end === -1 ? text.length : end);
}
