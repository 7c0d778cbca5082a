/** `npm test` runs seeds from 1 to here (seeds.test.ts). */
export const SEEDS_IN_SHORT = 2;
/** `npm run test:long` runs those after them up to here (seeds.long.test.ts). */
export const SEEDS_IN_TEST = 12;
