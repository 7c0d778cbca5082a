/**
 * Bugs planted for the simulation of leases of many ranges, one place each. lease-bugs.test.ts runs the `seed` of each; what
 * the run finds begins with one of its `properties` (lease-load.ts).
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const LEASE_LOAD_BUGS: readonly PlantedBug[] = [
  {
    name: 'keep-alive-acknowledged-over-a-checkpoint',
    rule: 'after a checkpoint a keep-alive is acknowledged only when that is taken back (lease-keeper.ts LK6)',
    file: 'packages/dataserver/src/range/lease-keeper.ts',
    find: 'else this.#takeBack(lease, done);',
    replace: 'else done(undefined, lease);',
    seed: 3,
    properties: ['LE1'],
  },
];
