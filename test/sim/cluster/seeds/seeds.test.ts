import { runsOf } from './seeds.ts';
import { SEEDS_IN_SHORT } from './seeds-in-test.ts';

runsOf({ first: 1, last: SEEDS_IN_SHORT });
