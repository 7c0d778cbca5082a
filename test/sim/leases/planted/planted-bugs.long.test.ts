import { replayShort } from '../../common/planted/replay-short.ts';
import { LEASE_BUGS } from './bugs.ts';

replayShort({
  simulation: 'the simulation of leases over ranges',
  run: { simulation: 'leases', name: 'run' },
  bugs: LEASE_BUGS,
  otherSeeds: 400,
});
