/**
 * Bugs planted for the simulation of locks of all kinds, each in one place. kinds-bugs.long.test.ts runs the `seed` of
 * each. One of the bug's `properties` must occur in what the run finds, or in the error at which the product stops.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const KINDS_BUGS: readonly PlantedBug[] = [
  {
    name: 'reader-overtakes-a-waiting-writer',
    rule: 'whoever comes later waits behind who waits, whatever it asks for (procedures.ts L2)',
    file: 'packages/lock/src/procedures/acquire.ts',
    find: 'if (!someoneWaits(rows) && rows.fits(wanted))',
    replace: "if ((!someoneWaits(rows) || wanted.mode === 'shared') && rows.fits(wanted))",
    seed: 1,
    properties: ['KL1: lock: first come, first served'],
  },
  {
    name: 'permits-beyond-the-capacity',
    rule: 'permits are given as long as there are enough (procedures.ts L1)',
    file: 'packages/lock/src/procedures/lock-holds.ts',
    find: 'head.permits + permits <= head.capacity',
    replace: 'head.permits < head.capacity',
    seed: 2,
    properties: ['KL1: lock: permits'],
  },
  {
    name: 'shares-outlive-their-session',
    rule: 'the end of a session takes all that it has in a lock (design §9)',
    file: 'packages/lock/src/records/lock-rows.ts',
    find: 'if (shareVersion !== 0) this.#vacateOrDelay(this.share(owner, shareVersion), delayed);',
    replace: '',
    seed: 2,
    properties: ['KL4', 'KL1', 'InvariantError: W'],
  },
  {
    name: 'upgrade-beside-another-reader',
    rule: 'who upgrades has the lock alone once all others are gone (procedures.ts U2)',
    file: 'packages/lock/src/procedures/upgrade.ts',
    find: 'if (rows.head.sharers === 1) {',
    replace: 'if (rows.head.sharers <= 2) {',
    seed: 1,
    properties: ['InvariantError: W6', 'KL1: lock: one holder'],
  },
];
