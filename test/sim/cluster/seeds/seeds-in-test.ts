/** Seeds from 1 to here are run by `npm test`. */
export const SEEDS_IN_TEST = 7;
