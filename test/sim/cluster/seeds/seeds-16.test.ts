import { runsOf } from './seeds.ts';

runsOf({ first: 16, last: 30 });
