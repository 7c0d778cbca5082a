import { runsOf } from './seeds.ts';

runsOf({ first: 41, last: 60 });
