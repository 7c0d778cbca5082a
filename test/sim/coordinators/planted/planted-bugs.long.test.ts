import { expect, test } from 'vitest';
import { replayShort } from '../../common/planted/replay-short.ts';
import { runSeed } from '../run.ts';
import { COORDINATOR_BUGS } from './bugs.ts';

test.each([1, 2, 3])('the simulation of coordinators finds nothing in what is there: seed %i', async (seed) => {
  expect((await runSeed(seed)).faults).toEqual([]);
});

replayShort({
  simulation: 'the simulation of coordinators',
  run: { simulation: 'coordinators', name: 'run' },
  bugs: COORDINATOR_BUGS,
  otherSeeds: 60,
});
