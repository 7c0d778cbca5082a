/** Runs that once found something in the product; each stays. */
import { runsAgain } from './seeds.ts';

runsAgain([
  {
    seed: 55,
    found: 'a range whose new voter was not created yet had no leader to tell the master of it',
    schedule: [
      { atMs: 22_455, kind: 'lost disk', lastsMs: 1_044, a: 27_608, b: 3_603, c: 61_309 },
      { atMs: 26_720, kind: 'crash in a checkpoint', lastsMs: 2_312, a: 36_423, b: 63_738, c: 63_472 },
      { atMs: 30_716, kind: 'replica added', lastsMs: 432, a: 8_181, b: 10_120, c: 6_563 },
      { atMs: 31_436, kind: 'learner promoted', lastsMs: 673, a: 23_355, b: 17_651, c: 51_854 },
    ],
  },
  {
    seed: 2000246,
    found: 'a checkpoint that somebody waited for behind the last one was not staged',
  },
]);
