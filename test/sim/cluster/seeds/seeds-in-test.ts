/** Seeds from 1 to here are run by `npm test` (seeds.test.ts). */
export const SEEDS_IN_SHORT = 2;
/** Those after them up to here are run by `npm run test:long` (seeds.long.test.ts). */
export const SEEDS_IN_TEST = 12;
