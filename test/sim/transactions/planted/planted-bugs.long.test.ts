import { replayShort } from '../../common/planted/replay-short.ts';
import { TRANSACTION_BUGS } from './bugs.ts';

replayShort({
  simulation: 'the simulation of transactions',
  run: { simulation: 'transactions', name: 'run' },
  bugs: TRANSACTION_BUGS,
  otherSeeds: 60,
});
