/** Seeds from 1 to here are run without faults of the program by `npm test` (raft-sim.test.ts). */
export const SEEDS_IN_TEST = 200;
