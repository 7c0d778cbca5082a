/**
 * Bugs planted for the simulation of nested transactions over ranges, each in one place. txn-bugs.long.test.ts runs the
 * `seed` of each. One of the bug's `properties` must occur in what the run finds, or in the error at which the product
 * stops.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const TXN_BUGS: readonly PlantedBug[] = [
  {
    name: 'puts-compared-with-earlier-deletes-only',
    rule: 'a transaction that could change a key twice is refused in every order (changed-once.ts CO2)',
    file: 'packages/protocol/src/internal/changed-once.ts',
    find: 'const other = furthest?.group === group ? second : furthest;',
    replace:
      'const reaching = furthest?.group === group ? second : furthest;\n    const other = reaching !== undefined && reaching.group < group ? reaching : undefined;',
    seed: 2,
    properties: ['TL2', 'PE1'],
  },
  {
    name: 'nested-branches-are-forgotten',
    rule: 'a transaction commits with the branches of all nested transactions on its path (plan.ts)',
    file: 'packages/gateway/src/transactions/plan.ts',
    find: "for (const step of branch.steps) if (typeof step !== 'number') visit(step);",
    replace: '',
    seed: 1,
    properties: ['TL3', 'lost', 'G-single', 'G1c', 'G0', 'internal'],
  },
  {
    name: 'both-branches-are-executed',
    rule: 'a range executes the branches that were committed, and no others (decision 19)',
    file: 'packages/dataserver/src/transactions/part-execution.ts',
    find: 'if (!committed.has(branch)) continue;',
    replace: 'if (!committed.has(branch) && op.type !== "delete") continue;',
    seed: 1,
    properties: ['TL3', 'PE1', 'lost', 'G-single', 'G1c', 'G0', 'internal'],
  },
];
