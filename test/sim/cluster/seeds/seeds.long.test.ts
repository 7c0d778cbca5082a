import { runsOf } from './seeds.ts';
import { SEEDS_IN_SHORT, SEEDS_IN_TEST } from './seeds-in-test.ts';

runsOf({ first: SEEDS_IN_SHORT + 1, last: SEEDS_IN_TEST });
