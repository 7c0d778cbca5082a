/** Seeds from 1 to here are run by `npm test` (raft-sim.test.ts). */
export const SEEDS_IN_SHORT = 20;
/** Those after them up to here are run by `npm run test:long` (raft-sim.long.test.ts). */
export const SEEDS_IN_TEST = 200;
