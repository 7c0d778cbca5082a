import { describe } from 'vitest';
import { replayPlanted } from '../../common/planted/replay.ts';
import { SEEDS_IN_TEST } from '../seeds.ts';
import { RAFT_PLANTING } from './planting.ts';

describe('the Raft simulation finds', () => {
  replayPlanted({
    planting: RAFT_PLANTING,
    seedsInTest: SEEDS_IN_TEST,
    spareSeeds: 120,
  });
});
