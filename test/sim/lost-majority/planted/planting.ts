import type { Planting } from '../../common/planted/planted-bug.ts';
import { LOST_MAJORITY_BUGS } from './bugs.ts';

export const LOST_MAJORITY_PLANTING: Planting = {
  simulation: 'lost-majority',
  command: 'pnpm sim:lost --seeds 100 --mutation',
  bugs: LOST_MAJORITY_BUGS,
  files: ['test/sim/lost-majority/planted/bugs.ts'],
};
