import { replayShort } from '../../common/planted/replay-short.ts';
import { MERGE_BUGS } from './bugs.ts';

replayShort({
  simulation: 'the simulation of merges',
  run: { simulation: 'range-cluster', name: 'merge-run' },
  bugs: MERGE_BUGS,
  otherSeeds: 40,
  breaks: (fault, property) => fault.includes(property),
});
