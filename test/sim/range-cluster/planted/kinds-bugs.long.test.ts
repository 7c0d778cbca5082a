import { replayShort } from '../../common/planted/replay-short.ts';
import { KINDS_BUGS } from './kinds-bugs.ts';

replayShort({
  simulation: 'the simulation of locks of all kinds',
  run: { simulation: 'range-cluster', name: 'kinds-run' },
  bugs: KINDS_BUGS,
  otherSeeds: 60,
});
