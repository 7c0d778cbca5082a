import { runsOf } from './seeds.ts';

runsOf({ first: 31, last: 45 });
