import type { Planting } from '../../common/planted/planted-bug.ts';
import { LOST_MAJORITY_BUGS } from './bugs.ts';

export const LOST_MAJORITY_PLANTING: Planting = {
  simulation: 'lost-majority',
  command: 'pnpm planted:lost',
  bugs: LOST_MAJORITY_BUGS,
  files: ['test/sim/lost-majority/planted/bugs.ts'],
};
