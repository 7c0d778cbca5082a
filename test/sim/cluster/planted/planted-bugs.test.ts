import { describe } from 'vitest';
import { replayPlanted } from '../../common/planted/replay.ts';
import { runSeed } from '../run.ts';
import { SEEDS_IN_TEST } from '../seeds/seeds.ts';
import { CLUSTER_PLANTING } from './planting.ts';

describe('the simulation of whole clusters finds', () => {
  replayPlanted({
    planting: CLUSTER_PLANTING,
    runSeed,
    seedsInTest: SEEDS_IN_TEST,
    spareSeeds: 40,
    timeoutMs: 300_000,
  });
});
