import { replayShort } from '../../common/planted/replay-short.ts';
import { TXN_BUGS } from './txn-bugs.ts';

replayShort({
  simulation: 'the simulation of nested transactions',
  run: { simulation: 'range-cluster', name: 'txn-run' },
  bugs: TXN_BUGS,
  otherSeeds: 40,
  breaks: (fault, property) => fault.includes(property),
});
