import type { Planting } from '../../common/planted/planted-bug.ts';
import { CLUSTER_BUGS } from './bugs.ts';

export const CLUSTER_PLANTING: Planting = {
  simulation: 'cluster',
  command: 'pnpm planted',
  bugs: CLUSTER_BUGS,
  shortRunsMs: [5_000, 10_000, 20_000],
  files: [
    'test/sim/cluster/planted/bugs.ts',
    'test/sim/cluster/planted/lock-bugs.ts',
    'test/sim/cluster/planted/auth-bugs.ts',
    'test/sim/cluster/planted/key-bugs.ts',
  ],
};
