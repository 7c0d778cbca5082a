import { runsOf } from './seeds.ts';

runsOf({ first: 1, last: 12 });
