import { runsOf } from './seeds.ts';

runsOf({ first: 13, last: 24 });
