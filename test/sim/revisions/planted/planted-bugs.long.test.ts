import { replayShort } from '../../common/planted/replay-short.ts';
import { REVISION_BUGS } from './bugs.ts';

replayShort({
  simulation: 'the simulation of revisions',
  run: { simulation: 'revisions', name: 'run' },
  bugs: REVISION_BUGS,
  otherSeeds: 60,
});
