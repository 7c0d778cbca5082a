/**
 * Bugs planted for the simulation of lost majorities, each in one place. planted-bugs.long.test.ts runs the `seed` of
 * each.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const LOST_MAJORITY_BUGS: readonly PlantedBug[] = [
  {
    layer: 'recovery',
    name: 'first-that-is-left-goes-on',
    rule: 'of those that are left the best log goes on (recovery/plan.ts RP1)',
    file: 'packages/gateway/src/admin/recovery/plan.ts',
    find: 'others.reduce((a, b) => (isBetter(b, a) ? b : a), first);',
    replace: 'first;',
    seed: 1,
    properties: ['the best goes on', 'what is left stays', 'log matching', 'state machine safety'],
  },
  {
    layer: 'Raft',
    name: 'alone-before-it-is-durable',
    rule: 'the entry by which a replica goes on alone counts when it is durable (forced.ts FC2)',
    file: 'packages/raft/src/core/membership/forced.ts',
    find: 's.forcedAt = { index, term };',
    replace: 's.commitTo(index);',
    seed: 1,
    properties: ['commit durable on a quorum', 'durable is kept'],
  },
];
