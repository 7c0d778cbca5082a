import { replayShort } from '../../common/planted/replay-short.ts';
import { STREAM_BUGS } from './stream-bugs.ts';

replayShort({
  simulation: 'the simulation of watch streams',
  run: { simulation: 'range-cluster', name: 'stream-run' },
  bugs: STREAM_BUGS,
  otherSeeds: 100,
});
