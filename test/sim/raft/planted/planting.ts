import type { Planting } from '../../common/planted/planted-bug.ts';
import { RAFT_BUGS } from './bugs.ts';

export const RAFT_PLANTING: Planting = {
  simulation: 'raft',
  command: 'pnpm planted:raft',
  bugs: RAFT_BUGS,
  files: ['test/sim/raft/planted/bugs.ts'],
};
