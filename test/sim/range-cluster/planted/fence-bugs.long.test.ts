import { replayShort } from '../../common/planted/replay-short.ts';
import { FENCE_BUGS } from './fence-bugs.ts';

replayShort({
  simulation: 'the simulation of writes under locks',
  run: { simulation: 'range-cluster', name: 'fence-run' },
  bugs: FENCE_BUGS,
  otherSeeds: 60,
});
