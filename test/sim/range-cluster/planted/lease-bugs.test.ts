import { replayShort } from '../../common/planted/replay-short.ts';
import { LEASE_LOAD_BUGS } from './lease-bugs.ts';

replayShort({
  simulation: 'the simulation of leases of many ranges',
  run: { simulation: 'range-cluster', name: 'lease-run' },
  bugs: LEASE_LOAD_BUGS,
  otherSeeds: 60,
});
