import { describe } from 'vitest';
import { replayPlanted } from '../../common/planted/replay.ts';
import { SEEDS_IN_TEST } from '../seeds/seeds-in-test.ts';
import { CLUSTER_PLANTING } from './planting.ts';

describe('the simulation of whole clusters finds, part 1 of two that share the processors', () => {
  replayPlanted({
    planting: CLUSTER_PLANTING,
    half: 0,
    seedsInTest: SEEDS_IN_TEST,
    spareSeeds: 60,
  });
});
