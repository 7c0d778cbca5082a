import { runsOf } from './seeds.ts';

runsOf({ first: 21, last: 40 });
