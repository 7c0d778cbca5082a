/** `npm test` runs the seeds from 1 to this one (raft-sim.test.ts). */
export const SEEDS_IN_SHORT = 20;
/** `npm run test:long` runs the seeds after those, up to this one (raft-sim.long.test.ts). */
export const SEEDS_IN_TEST = 200;
