/**
 * Bugs planted for the simulation of writes under locks, each in one place. fence-bugs.long.test.ts runs the `seed` of
 * each. One of the bug's `properties` must occur in what the run finds, or in the error at which the product stops.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const FENCE_BUGS: readonly PlantedBug[] = [
  {
    name: 'release-under-an-intent',
    rule: 'a lock whose version a transaction compares stays as it is until that is resolved (intents.ts I3)',
    file: 'packages/dataserver/src/transactions/intent-conflicts.ts',
    find: 'return firstOf((found) => parts.holding(found).changes(command.command.lock));',
    replace: 'return undefined;',
    seed: 1,
    properties: ['FL1', 'FL2'],
  },
  {
    name: 'session-ends-under-an-intent',
    rule: 'the end of a session waits for transactions that compare its locks (intents.ts I3)',
    file: 'packages/dataserver/src/transactions/intent-conflicts.ts',
    find: 'for (const lock of locks) touching.changes(lock);',
    replace: '',
    seed: 27,
    properties: ['FL1', 'FL2'],
  },
];
