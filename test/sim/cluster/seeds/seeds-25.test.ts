import { runsOf } from './seeds.ts';

runsOf({ first: 25, last: 36 });
